"""Tasks in memory: their forms, their split, and what they are refused for."""

from __future__ import annotations

import json
import random

import numpy as np
import pandas as pd
import pytest

from headatlas import HeadatlasWarning, TaskError, load_task
from headatlas.request.origin import task_from_json, task_to_json
from headatlas.task import Task, TaskSpec, listed_tasks

PAIRS = [(f"w{number} w{number + 1}", f" w{number + 2}") for number in range(20)]


def texts(items):
    return [(item.prompt, item.target) for item in items]


@pytest.mark.parametrize(
    "items",
    [
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        [{"prompt": prompt, "target": target} for prompt, target in PAIRS],
        pd.DataFrame(PAIRS, columns=["prompt", "target"]).assign(source="elsewhere"),
        iter(PAIRS),
    ],
    ids=["tuples", "tuple", "lists", "dicts", "table", "iterator"],
)
def test_items_are_pairs_dicts_or_a_table(items):
    task = Task.of(items, test=None)
    assert task == Task.of(PAIRS, test=None) and task.name == "items" and task.in_memory
    assert texts(task.items().train) == PAIRS and len(task.items().test) == 0
    assert task.items().seen == 20


def test_other_keys_of_items():
    items = [
        {"prompt": "a", "target": " b", "corrupted": "x", "foil": " c", "group": 1},
        {"prompt": "d", "target": " e"},
        {"prompt": "g", "target": " h", "group": "1"},
    ]
    task = Task.of(items, test=None)
    first, second, third = task.items().train
    assert first.corrupted == "x" and second.corrupted == ""
    assert first.group == third.group == "1" and second.group == "d"
    assert [record["foil"] for record in task.spec.source["items"]] == [" c", "", ""]
    table = pd.DataFrame(
        [{**item, "group": str(item["group"]) if "group" in item else None} for item in items]
    )
    assert Task.of(table, test=None) == task


def test_the_content_hash_covers_the_items_and_the_split():
    base = {"prompt": "a", "target": " b", "foil": " c"}
    others = [{"prompt": f"p{number}", "target": " t", "foil": " f"} for number in range(9)]
    tasks = [
        Task.of([base, *others]),
        Task.of([{**base, "target": " d"}, *others]),
        Task.of([{**base, "foil": " d"}, *others]),
        Task.of([{**base, "group": "g"}, *others]),
        Task.of([base, *others], test=3),
        Task.of([base, *others], test=None),
    ]
    assert len({task.items().content_hash for task in tasks}) == len(tasks)
    assert Task.of([base, *others], name="x").items().content_hash == tasks[0].items().content_hash


@pytest.mark.parametrize("count", range(2, 41))
def test_exactly_the_share_is_held_out(count):
    """`round(share * n)` items, at least one and never all, whatever the texts are."""
    rng = random.Random(count)
    items = [(f"prompt {rng.random()}", " t") for _ in range(count)]
    for share in (0.1, 0.25, 0.5, 0.99):
        sides = Task.of(items, test=share).items()
        assert len(sides.test) == min(max(1, round(share * count)), count - 1)
        assert sorted(texts([*sides.train, *sides.test])) == sorted(items) and not sides.known
    for number in range(1, count):
        assert len(Task.of(items, test=number).items().test) == number
    assert texts(Task.of(items).items().test) == texts(Task.of(items, test=0.1).items().test)


def test_the_order_of_items_does_not_change_what_is_held_out():
    held_out = texts(Task.of(PAIRS, test=4).items().test)
    shuffled = random.Random(1).sample(PAIRS, len(PAIRS))
    assert sorted(texts(Task.of(shuffled, test=4).items().test)) == sorted(held_out)
    assert set(held_out) < set(texts(Task.of(PAIRS, test=6).items().test))


def test_groups_are_held_out_whole():
    items = [{"prompt": f"p{number}", "target": " t", "group": f"g{number % 7}"} for number in range(60)]
    for count in (1, 8, 16, 30, 59):
        sides = Task.of(items, test=count).items()
        fitted, held_out = ({item.group for item in side} for side in (sides.train, sides.test))
        assert fitted and held_out and not fitted & held_out
        assert len(sides.train) + len(sides.test) == 60
        assert abs(len(sides.test) - min(count, 51)) <= 9  # a group has 8 or 9 items


def test_items_can_be_held_out_by_name():
    sides = Task.of(PAIRS[:15], test=PAIRS[15:]).items()
    assert texts(sides.train) == PAIRS[:15] and texts(sides.test) == PAIRS[15:] and sides.seen == 20
    with pytest.raises(TaskError, match="has the prompt or the group of an item to fit with"):
        Task.of(PAIRS[:15], test=PAIRS[14:]).items()
    grouped = [{"prompt": "held", "target": " t", "group": "g", "corrupted": "c"}]
    sides = Task.of(PAIRS, test=grouped).items()
    assert sides.test[0].group == "g" and sides.test[0].corrupted == "c" and len(sides.train) == 20


def test_names_come_from_mappings():
    tasks = listed_tasks({"a": PAIRS, "b": Task.of(PAIRS, test=3)})
    assert [task.name for task in tasks] == ["a", "b"] and tasks[1].spec.test == 3
    assert [task.name for task in listed_tasks(PAIRS)] == ["items"]
    assert [task.name for task in listed_tasks(iter(PAIRS), "forget")] == ["forget"]
    assert listed_tasks(("paper/math", "syntax")) == ["paper/math", "syntax"]
    assert listed_tasks("paper/math") == ["paper/math"] and listed_tasks([]) == []
    several = listed_tasks(["syntax", {"a": PAIRS}, Task.of(PAIRS, name="b"), PAIRS])
    assert [task if isinstance(task, str) else task.name for task in several] == ["syntax", "a", "b", "items"]
    assert load_task(PAIRS) == Task.of(PAIRS)


@pytest.mark.parametrize("test", [0.25, 3, None, "auto", PAIRS[18:]])
def test_a_task_in_memory_goes_through_json(test):
    items = [{"prompt": prompt, "target": target, "foil": " /x/y"} for prompt, target in PAIRS[:18]]
    task = Task.of(items, name="capitals", test=test)
    data = json.loads(json.dumps(task_to_json(task)))
    assert "folder" not in data
    again = task_from_json(data)
    assert again == task and again.items().content_hash == task.items().content_hash


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "task 'items' has no items"),
        ("ab", "items are a list of"),
        (5, "items are a list of"),
        ([("a",)], r"item 1 is \('a',\); give a pair"),
        ([("a", "b"), "c"], "item 2 is 'c'; give a pair"),
        ([{"prompt": "a"}], "item 1 has no target"),
        ([("a", None)], "item 1 has no target"),
        ([("a", 5)], "item 1: target is 5, not text"),
        ([{"prompt": "a", "target": "b", "answer": "c"}], "item 1 has the key 'answer'; allowed are prompt"),
        (pd.DataFrame({"prompt": ["a"]}), "the table has no column 'target'; it has prompt"),
    ],
)
def test_what_are_no_items_is_one_sentence(items, message):
    with pytest.raises(TaskError, match=message):
        Task.of(items)


@pytest.mark.parametrize("test", [0, 1.0, -1, 0.0, True, "half", {"a": 1}, float("nan")])
def test_what_cannot_be_held_out_is_one_sentence(test):
    with pytest.raises(TaskError, match=r"test is .*; allowed are a share between 0 and 1"):
        Task.of(PAIRS, test=test)


def test_numbers_of_numpy_are_numbers():
    assert Task.of(PAIRS, test=np.int64(3)) == Task.of(PAIRS, test=3)
    assert Task.of(PAIRS, test=np.float64(0.2)) == Task.of(PAIRS, test=0.2)


def test_a_split_that_would_leave_a_side_empty_is_refused():
    with pytest.raises(TaskError, match="test is 20, but there are 20 items; allowed are fewer"):
        Task.of(PAIRS, test=20).items()
    with pytest.raises(TaskError, match=r"only 1 item, so none can be held out; give more, or test=None"):
        Task.of(PAIRS[:1]).items()
    with pytest.raises(TaskError, match="2 items of one group, so none can be held out"):
        Task.of([{"prompt": p, "target": t, "group": "g"} for p, t in PAIRS[:2]]).items()
    with pytest.raises(TaskError, match="record 1 has an empty target"):
        Task.of([("a", " "), ("b", " c")]).require_readable()


def test_tasks_with_a_file_keep_their_rules(tmp_path):
    with pytest.raises(TaskError, match="test is a share between 0 and 1"):
        TaskSpec("x", {"file": "x.csv"}, "{prompt}", "{target}", test=None)
    with pytest.raises(TaskError, match="test is for tasks in memory; 'paper/math' holds out"):
        load_task("paper/math").holding_out(3)


def test_braces_in_items_are_text():
    (item,) = Task.of([("{a} {", "}")], test=None).items().train
    assert (item.prompt, item.target) == ("{a} {", "}")


# Arrays, tables and files


def test_an_array_of_pairs_is_a_list():
    pairs = [["a is", " b"], ["c is", " d"]]
    (task,) = listed_tasks(np.array(pairs))
    assert task.spec == Task.of(pairs, name="items").spec
    (named,) = listed_tasks({"letters": np.array(pairs, dtype=object)})
    assert named.spec == Task.of(pairs, name="letters").spec
    with pytest.raises(TaskError, match="give a pair"):
        Task.of(np.array([["a", "b", "c"]]))


def test_a_named_file_is_that_file(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("prompt,target\na is, b\nc is, d\n")
    for file in (path, str(path)):
        (task,) = listed_tasks({"letters": file})
        assert (task.name, task.spec.source) == ("letters", {"file": "words.csv"})
    with pytest.raises(TaskError, match="exist"):
        listed_tasks({"letters": "absent.csv"})


def test_a_column_that_is_almost_a_key_is_warned_of():
    table = pd.DataFrame({"prompt": ["a"], "target": ["b"], "foils": ["c"], "score": [1]})
    with pytest.warns(HeadatlasWarning, match="column 'foils' is not used; did you mean 'foil'") as warned:
        Task.of(table)
    assert len(warned) == 1
