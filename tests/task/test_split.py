"""The split holds out whole groups of related records, and counts every question once."""

from __future__ import annotations

import json
import re
from collections import Counter

import pandas as pd
import pytest

from headatlas import TaskError, UnknownNameError, load_task
from headatlas.task import builtin_relations, load_relation


def groups_of(items):
    return {item.group for item in items}


def last_line(item):
    return item.prompt.rpartition("\n")[2]


def write_csv(path, records):
    pd.DataFrame(records).to_csv(path, index=False)
    return path


def test_math_holds_out_whole_templates():
    items = load_task("math").items()
    assert len(groups_of(items.test)) >= 10
    assert not groups_of(items.test) & groups_of([*items.train, *items.known])
    assert groups_of(items.known) <= groups_of(items.train)
    masked = {re.sub(r"\d+", "#", item.prompt) for item in items.train}
    assert not any(re.sub(r"\d+", "#", item.prompt) in masked for item in items.test)


def test_arithmetic_keeps_commuted_twins_on_one_side():
    def operands(items):
        parts = [last_line(item).removesuffix(" =").split() for item in items]
        return {(sign, *sorted((first, second))) for first, sign, second in parts}

    items = load_task("arithmetic").items()
    assert not operands(items.test) & operands([*items.train, *items.known])


def test_syntax_holds_out_whole_lemmas():
    items = load_task("syntax").items()
    assert len(groups_of(items.test)) > 50
    assert not groups_of(items.test) & groups_of([*items.train, *items.known])


@pytest.mark.parametrize("name", builtin_relations())
def test_a_reversed_pair_is_on_the_side_of_its_pair(name):
    """The case of letters makes no difference: Monday -> Tuesday and monday -> tuesday are one pair."""
    relation = load_relation(name)
    template = relation.prompt or "{source} ->"
    words = {
        (template.format(source=source).rpartition("\n")[2], f" {target}"): frozenset(
            (source.casefold(), target.casefold())
        )
        for source, target in relation.pairs
    }
    items = load_task(f"relation:{name}").items()
    fitted = {words[last_line(item), item.target] for item in (*items.train, *items.known)}
    assert not any(words[last_line(item), item.target] in fitted for item in items.test)


def test_math_takes_as_many_problems_of_each_template():
    """40 of each of the templates that have so many short ones: none of 20 templates alone, as before."""
    items = load_task("math").items()
    counts = Counter(item.group for item in (*items.train, *items.known, *items.test))
    assert len(counts) >= 50 and set(counts.values()) == {40}


def test_a_group_splits_records_that_all_have_one_prompt(tmp_path):
    records = [{"text": f"word{n}", "source file": f"f{n % 8}"} for n in range(80)]
    write_csv(tmp_path / "words.csv", records)
    (tmp_path / "words.yaml").write_text(
        "name: words\nsource: {file: words.csv}\nprompt: 'Say a word:'\ntarget: ' {text}'\n"
        "group: source file\n"
    )
    items = load_task(tmp_path / "words.yaml").items()
    assert groups_of(items.test) and not groups_of(items.test) & groups_of(items.train)
    assert groups_of([*items.train, *items.test, *items.known]) == {f"f{n}" for n in range(8)}


def test_copies_of_a_held_out_record_count_once(tmp_path):
    records = [{"prompt": f"{n} + 1 =", "target": f" {n + 1}"} for n in range(40) for _ in range(12)]
    items = load_task(write_csv(tmp_path / "sums.csv", records)).items()
    assert len({item.prompt for item in items.test}) == len(items.test)
    assert items.copies == 11 * len(items.test) > 0


def test_columns_of_a_local_file_are_mapped(tmp_path):
    records = [{"question": f"{n} + 1 =", "answer": f" {n + 1}", "template": f"t{n % 8}"} for n in range(80)]
    pd.DataFrame(records).to_parquet(tmp_path / "sums.parquet")
    (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, records)))
    write_csv(tmp_path / "sums.csv", records)
    hashes = set()
    for ending in ("csv", "parquet", "jsonl"):
        task = load_task(f"{tmp_path}/sums.{ending}?prompt=question&target=answer&group=template")
        items = task.items()
        assert groups_of([*items.train, *items.test]) == {f"t{n}" for n in range(8)}
        assert not groups_of(items.test) & groups_of(items.train)
        hashes.add(items.content_hash)
    assert len(hashes) == 1
    with pytest.raises(TaskError, match="no column 'theme'"):
        load_task(f"{tmp_path}/sums.csv?prompt=question&target=answer&group=theme").items()
    with pytest.raises(UnknownNameError, match="promt"):
        load_task(f"{tmp_path}/sums.csv?promt=question")


def test_the_hash_does_not_depend_on_how_a_path_is_typed(tmp_path, monkeypatch):
    pairs = [{"source": f"w{n}", "target": f"v{n}"} for n in range(60)]
    write_csv(tmp_path / "pairs.csv", pairs)
    records = [{"prompt": f"{n} + 1 =", "target": f" {n + 1}"} for n in range(60)]
    write_csv(tmp_path / "sums.csv", records)
    (tmp_path / "inner").mkdir()
    text = 'name: sums\nsource: {{file: {}}}\nprompt: "{{prompt}}"\ntarget: "{{target}}"\n'
    (tmp_path / "near.yaml").write_text(text.format("sums.csv"))
    (tmp_path / "inner" / "far.yaml").write_text(text.format("../sums.csv"))
    monkeypatch.chdir(tmp_path)
    names = ("relation:pairs.csv", f"relation:{tmp_path}/pairs.csv", "relation:inner/../pairs.csv")
    assert len({load_task(name).items().content_hash for name in names}) == 1
    assert len({load_task(name).items().content_hash for name in ("near.yaml", "inner/far.yaml")}) == 1


def test_the_error_for_an_unknown_task_offers_no_placeholder():
    with pytest.raises(UnknownNameError) as error:
        load_task("blimp")
    assert "paradigm" not in str(error.value)
