"""Tasks from hub data sets: the real loading code, on local folders of the public data sets' layout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

from headatlas import TaskError, UnknownNameError, load_task
from headatlas.task import Task


def publish(root: Path, splits: dict[str, dict[str, list[dict]]]) -> Path:
    """A data set as the hub has it: Parquet shards by configuration and split, and a card that names them."""
    configs = []
    for config, parts in splits.items():
        files = []
        for split, records in parts.items():
            folder = root / config
            folder.mkdir(parents=True, exist_ok=True)
            half = len(records) // 2
            for shard, piece in enumerate((records[:half], records[half:])):
                pd.DataFrame(piece).to_parquet(folder / f"{split}-{shard:05d}-of-00002.parquet")
            files.append({"split": split, "path": f"{config}/{split}-*"})
        configs.append({"config_name": config, "data_files": files})
    (root / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n")
    return root


def local(name: str, root: Path) -> Task:
    """The built-in task, with its data set read from a folder."""
    task = load_task(name)
    return replace(task, spec=replace(task.spec, source={**task.spec.source, "hub": str(root)}))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def test_commonsense(tmp_path):
    def record(number, right):
        texts = [f"{word}{number}" for word in ("bank", "shop", "home", "park", "lake")]
        return {
            "id": str(number),
            "question": f"Where is thing {number}?",
            "choices": {"label": list("ABCDE"), "text": texts},
            "answerKey": right,
        }

    parts = {
        "train": [record(n, "ABCDE"[n % 5]) for n in range(40)],
        "validation": [record(n, "ABCDE"[n % 5]) for n in range(100, 110)],
    }
    publish(tmp_path / "csqa", {"default": parts})
    items = local("paper/commonsense", tmp_path / "csqa").items()
    assert len(items.train) == 40 and len(items.test) == 10
    letters = set()
    for item in (*items.train, *items.test):
        question = item.prompt.rpartition("Question: ")[2].split("\n")
        number = int(question[0].removeprefix("Where is thing ").rstrip("?"))
        options = dict(line.split(". ") for line in question[1:-1])
        right = ("bank", "shop", "home", "park", "lake")[number % 5]
        assert options[item.target.strip()] == f"{right}{number}"
        letters.add(item.target)
    assert len(letters) == 5  # shuffled
    assert items.content_hash == local("paper/commonsense", tmp_path / "csqa").items().content_hash


def test_math_takes_the_shortest(tmp_path):
    records = [
        {"problem": "p" * n, "generated_solution": "s", "expected_answer": "1", "problem_source": "x"}
        for n in range(1, 61)
    ]
    publish(tmp_path / "open", {"default": {"train_1M": records}})
    task = local("paper/math", tmp_path / "open")
    task = replace(task, spec=replace(task.spec, shortest=25))
    items = task.items()
    lengths = sorted(item.prompt.count("p") for item in (*items.train, *items.test))
    assert lengths == list(range(1, 26)) and items.seen == 60


def test_syntax_has_examples_of_the_same_kind(tmp_path):
    def part(kind, start, count):
        return [
            {
                "idx": n,
                "inputs": f"{kind} question {n}\nA:",
                "targets": [f"{kind} answer {n}", "other"],
                "multiple_choice_targets": [],
                "multiple_choice_scores": [],
            }
            for n in range(start, start + count)
        ]

    kinds = ("linguistic_mappings", "tense", "subject_verb_agreement")
    splits = {kind: {"train": part(kind, 0, 20), "validation": part(kind, 100, 5)} for kind in kinds}
    publish(tmp_path / "bb", splits)
    items = local("paper/syntax", tmp_path / "bb").items()
    assert len(items.train) == 60 and len(items.test) == 15
    for item in items.test:
        kind, _, _, number = item.target.strip().partition(" answer ")[0], "", "", item.target.split()[-1]
        assert item.target == f" {kind} answer {number}"
        assert item.prompt.count(kind) == 3  # question and answer of the example, and the question
        assert item.prompt.endswith(f"{kind} question {number}\nA:")


def test_minimal_pairs(tmp_path):
    pairs = [(f"The cat {n} sleeps well.", f"The cat {n} sleep well.") for n in range(30)]
    pairs += [("Who left?", "What left?"), ("A b c.", "A b c.")]  # nothing shared; no difference
    records = [{"sentence_good": good, "sentence_bad": bad, "UID": "x"} for good, bad in pairs]
    publish(tmp_path / "blimp", {"agreement": {"train": records}, "other": {"train": records[:3]}})
    task = local("blimp/agreement", tmp_path / "blimp")
    assert task.name == "blimp/agreement"
    items = task.items()
    every = {(item.prompt, item.target) for item in (*items.train, *items.test)}
    assert every == {(f"The cat {n}", " sleeps well.") for n in range(30)}


def test_a_data_set_by_its_name(tmp_path):
    records = [{"question": f"q{n}", "answer": f" a{n}"} for n in range(40)]
    publish(tmp_path / "mine", {"main": {"train": records}})
    task = load_task(f"hub:{tmp_path / 'mine'}?config=main&split=train&prompt=question&target=answer")
    items = task.items()
    assert task.name == "mine/main"
    assert load_task(f"hub:{tmp_path / 'mine'}?split=train").name == "mine"
    assert load_task("hub:owner/name?config=main").name == "owner/name/main"
    assert items.content_hash == replace(task, spec=replace(task.spec, name="other")).items().content_hash
    assert load_task("hub:owner/name?name=mine").name == "mine"
    assert {item.prompt for item in (*items.train, *items.test)} == {f"q{n}" for n in range(40)}
    for repeated in ("hub:owner/name", f"{tmp_path}/m.parquet", f"{tmp_path}/m.csv"):
        with pytest.raises(
            TaskError, match=r"'prompt' is given more than once \('q', 'k'\); give each option"
        ):
            load_task(f"{repeated}?prompt=q&target=a&prompt=k")
    task = load_task(f"hub:{tmp_path / 'mine'}?config=main&prompt=question&target=reply")
    with pytest.raises(TaskError, match=r"no column 'reply'; the columns are config, question, answer"):
        task.items()
    with pytest.raises(UnknownNameError, match="splitt"):
        load_task("hub:owner/name?splitt=x")
    with pytest.raises(TaskError, match="names no data set"):
        load_task("hub:?split=x")


def test_errors_are_one_sentence(tmp_path):
    records = [{"question": f"q{n}", "answer": f" a{n}"} for n in range(4)]
    publish(tmp_path / "mine", {"main": {"train": records}})
    for name in (
        f"hub:{tmp_path / 'none'}",
        f"hub:{tmp_path / 'mine'}?config=other",
        "hub:owner/unreachable",
    ):
        with pytest.raises(TaskError, match="cannot be read") as caught:
            load_task(name).items()
        assert "\n" not in str(caught.value)
    with pytest.raises(UnknownNameError, match="no transform named"):
        load_task(f"hub:{tmp_path / 'mine'}?config=main&transform=nonsense").items()
