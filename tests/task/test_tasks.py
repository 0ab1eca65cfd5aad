"""Tasks: read from everywhere, held out fairly, refused in one sentence."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections import Counter

import pandas as pd
import pytest
import yaml

from headatlas import RequestError, TaskError, UnknownNameError, load_task
from headatlas.task import Task, TaskSpec, builtin_tasks

RECORDS = [{"prompt": f"{n} + 1 =", "target": f" {n + 1}", "kind": n % 3} for n in range(60)]


def write(path, records=RECORDS):
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(record) for record in records) + "\n")
    elif path.suffix == ".csv":
        pd.DataFrame(records).to_csv(path, index=False)
    else:
        pd.DataFrame(records).to_parquet(path)
    return path


def spec(**changes):
    plain = {"name": "sums", "source": {"file": "x.jsonl"}, "prompt": "{prompt}", "target": "{target}"}
    return TaskSpec.from_mapping({**plain, **changes}, "the test")


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_a_file_is_a_task(tmp_path, ending):
    task = load_task(write(tmp_path / f"sums{ending}"))
    items = task.items()
    assert task.name == "sums" and items.seen == 60
    found = {(item.prompt, item.target) for item in (*items.train, *items.test)}
    assert found == {(record["prompt"], record["target"]) for record in RECORDS}
    assert not {item.prompt for item in items.train} & {item.prompt for item in items.test}


def test_the_three_formats_hold_the_same_task(tmp_path):
    hashes = set()
    for ending in (".jsonl", ".csv", ".parquet"):
        write(tmp_path / f"sums{ending}")
        chosen = spec(source={"file": "sums" + ending})
        items = Task(chosen, tmp_path).items()
        hashes.add(tuple((item.prompt, item.target) for item in items.train))
    assert len(hashes) == 1


def test_a_yaml_file_is_a_task(tmp_path):
    write(tmp_path / "data.jsonl")
    text = {
        "name": "sums",
        "version": 3,
        "licence": "CC0-1.0",
        "source": {"file": "data.jsonl"},
        "instruction": "Add one.",
        "prompt": "Q: {prompt}\nA:",
        "target": "{target}",
        "examples": 2,
        "examples_by": "kind",
    }
    (tmp_path / "sums.yaml").write_text(yaml.safe_dump(text))
    items = load_task(tmp_path / "sums.yaml").items()
    kinds = {record["prompt"]: record["kind"] for record in RECORDS}
    held_out = {item.prompt.split("Q: ")[-1] for item in items.test}
    for item in (*items.train, *items.test):
        lines = item.prompt.split("\n")
        assert lines[0] == "Add one." and len(lines) == 1 + 2 * 3 and lines[-1] == "A:"
        questions = [line.removeprefix("Q: ") for line in lines if line.startswith("Q: ")]
        assert len(set(questions)) == 3
        assert len({kinds[question] for question in questions}) == 1  # examples of the same kind
        assert not {f"{question}\nA:" for question in questions[:-1]} & held_out  # none is held out
        assert item.target == f" {int(questions[-1].split()[0]) + 1}"


def test_what_is_held_out_depends_on_the_text_alone(tmp_path):
    write(tmp_path / "x.jsonl")
    first = {item.prompt for item in Task(spec(), tmp_path).items().test}
    shuffled = RECORDS * 2
    random.Random(1).shuffle(shuffled)
    write(tmp_path / "x.jsonl", [*shuffled, {"prompt": "new", "target": " x", "kind": 0}])
    second = Task(spec(), tmp_path).items()
    assert first <= {item.prompt for item in second.test} <= first | {"new"}
    assert not first & {item.prompt for item in second.train}  # a repeated text is on one side only


def test_all_answers_to_one_prompt_are_on_one_side(tmp_path):
    """A problem with many solutions is not both learned from and held out."""
    records = [
        {"prompt": f"problem {n}", "target": f" way {way}"} for n in range(50) for way in range(1 + n % 8)
    ]
    random.Random(2).shuffle(records)
    write(tmp_path / "x.jsonl", records)
    items = Task(spec(test=0.2), tmp_path).items()
    assert not {item.prompt for item in items.train} & {item.prompt for item in items.test}
    assert len(items.train) + len(items.test) == len(records)
    assert 3 <= len({item.prompt for item in items.test}) <= 20  # more answers do not hold a prompt out


def test_where_all_have_one_prompt_texts_are_held_out(tmp_path):
    records = [{"prompt": "Say a word:", "target": f" word{n}"} for n in range(60)]
    write(tmp_path / "x.jsonl", [*records, *records])
    items = Task(spec(), tmp_path).items()
    assert items.test and not {item.target for item in items.train} & {item.target for item in items.test}


def test_generators_of_one_name_are_not_mixed_up(tmp_path):
    for place, letter in (("one", "A"), ("two", "B")):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "gen.py").write_text(
            f"def make():\n    return [{{'prompt': str(n), 'target': '{letter}'}} for n in range(40)]\n"
        )
        task = {
            "name": place,
            "source": {"generator": "gen:make"},
            "prompt": "{prompt}",
            "target": "{target}",
        }
        (folder / "task.yaml").write_text(yaml.safe_dump(task))
    for place, letter in (("one", "A"), ("two", "B"), ("one", "A")):
        items = load_task(tmp_path / place / "task.yaml", trust_code=True).items()
        assert {item.target for item in items.train} == {letter}


@pytest.mark.parametrize(
    "generator",
    [
        "headatlas.model:load_model",
        "headatlas.task.records:import_module",
        "headatlas.task.generatorsx:f",
        "os:listdir",
    ],
)
def test_only_our_generators_run_untrusted(tmp_path, generator):
    """Not every function of ours: some can be told to run foreign code."""
    task = {"name": "x", "source": {"generator": generator}, "prompt": "{prompt}", "target": "{target}"}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    with pytest.raises(TaskError, match="if you trust it"):
        load_task(tmp_path / "task.yaml").items()


def test_a_wrong_byte_in_csv_is_found(tmp_path):
    lines = ["prompt,target", *(f"question {n},answer" for n in range(9000))]
    data = bytearray("\n".join(lines).encode())
    place = len(data) - 7
    data[place] = 0xFF
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(TaskError, match=rf"not valid UTF-8: line 9001, byte {place} of the file"):
        load_task(tmp_path / "x.csv").items()


@pytest.mark.parametrize("name", ["blimp/", "blimp/<paradigm>", "blimp/paradigm"])
def test_a_family_is_no_task(name):
    with pytest.raises(TaskError, match="67 paradigms"):
        load_task(name)


def test_the_hash_tells_tasks_apart(tmp_path):
    write(tmp_path / "x.jsonl")
    plain = Task(spec(), tmp_path).items().content_hash
    assert Task(spec(), tmp_path).items().content_hash == plain
    assert Task(spec(version=2), tmp_path).items().content_hash != plain
    write(tmp_path / "x.jsonl", [*RECORDS[:-1], {**RECORDS[-1], "target": " 7"}])
    assert Task(spec(), tmp_path).items().content_hash != plain


def test_the_shortest_are_kept(tmp_path):
    records = [
        {"prompt": "x" * length, "target": "y"} for length in random.Random(0).sample(range(1, 400), 300)
    ]
    write(tmp_path / "x.jsonl", records)
    items = Task(spec(shortest=40), tmp_path).items()
    lengths = sorted(len(item.prompt) for item in (*items.train, *items.test))
    assert lengths == sorted(len(record["prompt"]) for record in records)[:40] and items.seen == 300


def test_a_long_source_is_sampled_fairly(tmp_path):
    write(tmp_path / "x.jsonl", [{"prompt": str(n), "target": "y"} for n in range(5000)])
    items = Task(spec(rows=500), tmp_path).items()
    kept = [int(item.prompt) for item in (*items.train, *items.test)]
    assert len(set(kept)) == 500 and items.seen == 5000
    assert 2300 < sum(kept) / 500 < 2700  # not the first ones: mean 250


@pytest.mark.slow
def test_a_large_file_is_streamed(tmp_path):
    """A hundred megabytes through a few: memory does not grow with the file."""
    line = json.dumps({"prompt": "p" * 900, "target": "t"}) + "\n"
    with (tmp_path / "x.jsonl").open("w") as file:
        for number in range(110_000):
            file.write(line.replace("ppp", f"{number:06d}", 1))
    tracemalloc.start()
    items = Task(spec(rows=1000), tmp_path).items()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert items.seen == 110_000 and peak < 20e6


def refused(words, run):
    with pytest.raises(TaskError) as caught:
        run()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert message.endswith(".") and message.count("\n") == 0
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([{"question": "a", "answer": "b"}] * 30, ["no column 'prompt'", "question, answer"]),
        ([{"prompt": "a", "target": " "}] * 30, ["empty target", "record 1"]),
        ([{"prompt": "a", "target": None}] * 30, ["empty target"]),
        ([{"prompt": "a", "target": "b"}] * 30, ["too few (or too much alike) to hold some out"]),
        ([], ["no records"]),
    ],
)
def test_bad_records(tmp_path, records, words):
    path = tmp_path / "bad.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    refused(words, lambda: load_task(path).items())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.jsonl", b'{"prompt": "\xff\xfe", "target": "b"}\n', ["not valid UTF-8", "line 1"]),
        ("x.jsonl", b'{"prompt": 1}\nnot json\n', ["line 2 is not JSON"]),
        ("x.jsonl", b"[1, 2]\n", ["line 1 is not an object"]),
        ("x.jsonl", b'{"prompt": "' + b"a" * (17 * 2**20) + b'"}', ["line 1 is longer than 16 MiB"]),
        ("x.csv", b"prompt,target\na\xff,b\n", ["not valid UTF-8"]),
        ("x.csv", b"prompt,target\na\n", ["line 2", "as many fields"]),
        ("x.csv", b'prompt,target\n"a,b\n', ["not CSV"]),
        ("x.parquet", b"PAR1 nonsense", ["cannot be read as Parquet"]),
        ("x.txt", b"hello", ["x.txt is not a task file", ".jsonl"]),
        ("x.yaml", b"name: [", ["not valid YAML at line"]),
        ("x.yaml", b"\xff", ["not valid UTF-8"]),
        ("x.yaml", b"just words", ["holds no task"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c", ["no 'source'"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {url: x}", ["generator, file, relation, hub"]),
        ("x.yaml", b"name: a\nprompt: '{b'\ntarget: c\nsource: {file: x}", ["prompt", "braces"]),
        (
            "x.yaml",
            b"name: a\nprompt: '{b.c}'\ntarget: c\nsource: {file: x}",
            ["{b.c} is no plain column name"],
        ),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {file: x}\ntest: 2", ["share between 0 and 1"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {file: x}\nexamples: -1", ["whole number"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {file: x}\nshortest: 0", ["from 1 on"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {file: x, columns: [a]}", ["columns"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {hub: x, configs: main}", ["configs"]),
        ("x.yaml", b"name: ''\nprompt: b\ntarget: c\nsource: {file: x}", ["name is a line of text"]),
        ("x.yaml", b"name: a\nprompt: '{b:d}'\ntarget: c\nsource: {file: x}", ["no plain column name"]),
        ("x.yaml", b"name: a\nprompt: b\ntarget: c\nsource: {file: x}\nexamples_by: [a]", ["one column"]),
        ("x.csv", b"prompt,prompt\na,b\n", ["same name"]),
    ],
)
def test_bad_files(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    refused(words, lambda: load_task(tmp_path / name).items())


def test_a_missing_file(tmp_path):
    refused(["does not exist"], lambda: load_task(tmp_path / "no.jsonl"))
    refused(["cannot be read"], lambda: load_task(tmp_path / "no.yaml"))


def test_unknown_names_answer_with_the_closest():
    with pytest.raises(UnknownNameError, match="did you mean 'syntax'"):
        load_task("sintax")
    with pytest.raises(UnknownNameError, match="did you mean 'examples'"):
        spec(exampels=1)
    with pytest.raises(UnknownNameError, match="did you mean 'columns'"):
        spec(source={"file": "x", "colums": {}})


@pytest.mark.parametrize("value", [5, None, b"math", ["math"]])
def test_what_is_no_task_is_one_sentence(value):
    with pytest.raises(TaskError, match="is not a task; give a name, a file"):
        load_task(value)


def test_a_template_cannot_reach_into_objects(tmp_path):
    with pytest.raises(RequestError):
        spec(prompt="{prompt.__class__}")
    with pytest.raises(RequestError):
        spec(prompt="{0}")


def test_a_generator_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "def made(size=3):\n    return [{'q': str(n), 'a': str(-n)} for n in range(size)]\n"
        "def words():\n    return ['a']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    chosen = spec(source={"generator": "mine:made", "options": {"size": 50}}, prompt="{q}", target=" {a}")
    refused(["runs the code of 'mine:made'", "load_task(…, trust_code=True)"], Task(chosen).items)
    assert Task(chosen, trust_code=True).items().seen == 50

    def made_by(name, **options):
        return Task(spec(source={"generator": name, "options": options}), trust_code=True).items

    refused(["no generator 'mine:other'"], made_by("mine:other"))
    refused(["no generator 'nowhere:made'"], made_by("nowhere:made"))
    refused(["failed with TypeError", "nosuch"], made_by("mine:made", nosuch=1))
    refused(["gave 'a', not a record"], made_by("mine:words"))


def test_a_generator_beside_its_yaml(tmp_path):
    (tmp_path / "beside.py").write_text("def made():\n    return [{'q': str(n)} for n in range(40)]\n")
    text = {"name": "x", "source": {"generator": "beside:made"}, "prompt": "{q}", "target": " {q}"}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(text))
    assert load_task(tmp_path / "x.yaml", trust_code=True).items().seen == 40


@pytest.mark.parametrize("value", [["a"], {"text": "a"}, float("nan"), b"a"])
def test_values_that_are_no_text_are_refused(value):
    from headatlas.task.spec import fill

    refused(["column 'target' holds a"], lambda: fill("{target}", {"target": value}, "task 'x'"))


def test_half_a_character(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"prompt": "a \\ud800", "target": "b"}\n' * 30)
    refused(["half a character"], Task(spec(), tmp_path).items)


def test_equal_records_do_not_hide_the_others(tmp_path):
    same = [{"prompt": "same", "target": " x", "kind": 0}] * 80
    write(tmp_path / "x.jsonl", [*same, *RECORDS])
    items = Task(spec(examples=1), tmp_path).items()
    assert all(len(item.prompt.split("\n")) == 2 for item in items.train)


def test_prose_is_not_part_of_the_content(tmp_path):
    write(tmp_path / "x.jsonl")
    plain = Task(spec(), tmp_path).items().content_hash
    assert Task(spec(about="other words", licence="MIT"), tmp_path).items().content_hash == plain


def test_examples_by_a_column_that_is_not_there(tmp_path):
    write(tmp_path / "x.jsonl")
    refused(
        ["examples_by names the column 'kindd'"], Task(spec(examples=1, examples_by="kindd"), tmp_path).items
    )


def test_more_examples_than_records(tmp_path):
    write(tmp_path / "x.jsonl", RECORDS[:20])
    refused(["needs 30 worked examples"], Task(spec(examples=30), tmp_path).items)


def test_every_built_in_task_says_what_it_is():
    specs = {one.name: one for one in builtin_tasks()}
    assert set(specs) == {
        "aba",
        "abb",
        "arithmetic",
        "blimp/<paradigm>",
        "math",
        "paper/commonsense",
        "paper/math",
        "paper/syntax",
        "syntax",
    }
    for one in specs.values():
        assert one.licence and one.about and one.version >= 1
    assert load_task("blimp/wh_island").spec.source["configs"] == ["wh_island"]


def test_arithmetic_is_right():
    items = load_task("arithmetic").items()
    for item in (*items.train, *items.test):
        lines = [*item.prompt.split("\n")[:-1], item.prompt.split("\n")[-1] + item.target]
        assert len(lines) == 5
        for line in lines:
            left, right = line.split(" = ")
            first, sign, second = left.split()
            assert int(right) == (int(first) + int(second) if sign == "+" else int(first) * int(second))


def test_math_has_distinct_short_problems_that_end_in_their_answer():
    items = load_task("math").items()
    every = [*items.train, *items.test, *items.known]
    templates = Counter(item.group for item in every)
    assert len(templates) == 53 and set(templates.values()) == {40}
    assert len({item.prompt for item in every}) == len(every)
    for item in every:
        assert item.prompt.startswith("Question: ") and item.prompt.endswith("\nSolution:")
        assert "Give the result" not in item.prompt
        assert item.target.rpartition("\n")[2].startswith("#### ")
    assert max(len(item.prompt + item.target) for item in every) <= 550
