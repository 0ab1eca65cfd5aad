"""The split holds out whole groups of related records, and counts every question once."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from importlib.resources import files

import pandas as pd
import pytest

from headatlas import TaskError, UnknownNameError, load_task
from headatlas.task import builtin_relations, load_relation
from headatlas.task.generators import grammar, lexicon, syntax


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


def words_of(text):
    return re.findall(r"[a-z]+", text.lower())


def asked_forms(item):
    """(lemma, form): the forms of the held-out noun or verb that stand in the target."""
    word_class, _, lemma = item.group.partition(" ")
    inflected = (grammar.third_person, grammar.past, grammar.participle, grammar.gerund)
    forms = {
        lemma,
        *(inflect(lemma) for inflect in ([grammar.plural] if word_class == "noun" else inflected)),
    }
    return {(lemma, form) for form in forms & set(words_of(item.target))}


def test_no_form_that_syntax_asks_for_is_a_training_target_of_its_kind():
    """On the text, whatever the labels say: held-out words are new as answers, though not as words."""
    items = load_task("syntax").items()
    kinds = {instruction: kind for kind, instruction in syntax.INSTRUCTIONS.items()}
    targets, heads, asked = defaultdict(set), set(), defaultdict(set)
    for item in (*items.train, *items.known):
        kind = kinds[item.prompt.partition("\n")[0]]
        targets[kind].update(words_of(item.target))
        if kind == "agreement":  # whose answer is a verb: the noun is the subject, other nouns are attractors
            adjectives = set().union(*lexicon.ADJECTIVES.values())
            heads.add(next(word for word in words_of(item.target)[1:] if word not in adjectives))
    for item in items.test:
        assert asked_forms(item)
        asked[kinds[item.prompt.partition("\n")[0]]] |= asked_forms(item)
    assert set(asked) == set(targets) == set(kinds.values())
    for kind, forms in asked.items():
        fitted = heads if kind == "agreement" else targets[kind]
        assert not fitted & {form for _, form in forms}, kind
    text = {word for item in items.train for word in words_of(f"{item.prompt} {item.target}")}
    readme = (files("headatlas.task") / "builtin" / "README.md").read_text(encoding="utf-8")
    for kind, forms in asked.items():
        lemmas, seen = {lemma for lemma, _ in forms}, {lemma for lemma, form in forms if form in text}
        share = round(100 * len(seen) / len(lemmas))
        assert f"| {kind.replace('_', ' ')} | {len(lemmas)} | {len(seen)} ({share} %) |" in readme


# Words that pairs of a relation share


def test_relations_with_words_on_both_sides_are_named():
    readme = (files("headatlas.task") / "builtin" / "README.md").read_text(encoding="utf-8")
    paragraph = next(part for part in readme.split("\n\n") if part.startswith("In these relations"))
    leaking = set()
    for name in builtin_relations():
        relation = load_relation(name)
        by_line = {
            ((relation.prompt or "{source} ->").format(source=source).rpartition("\n")[2], f" {target}"): {
                source.casefold(), target.casefold()
            }
            for source, target in relation.pairs
        }  # fmt: skip
        items = load_task(f"relation:{name}").items()
        fitted = set().union(
            *(by_line[last_line(item), item.target] for item in (*items.train, *items.known))
        )
        if any(fitted & by_line[last_line(item), item.target] for item in items.test):
            leaking.add(name)
    assert leaking == set(re.findall(r"`([a-z-]+)`", paragraph.partition(". ")[0]))


def relation_items(path, pairs):
    """The items of `relation:PATH`, and the pairs on its three sides."""
    write_csv(path, [{"source": source, "target": target} for source, target in pairs])
    items = load_task(f"relation:{path}").items()
    sides = [[(last_line(item).removesuffix(" ->"), item.target.strip()) for item in side] for side in (
        items.train, items.known, items.test
    )]  # fmt: skip
    assert sorted(pair for side in sides for pair in side) == sorted(pairs)
    return sides


def test_one_large_cluster_breaks_up_no_other(tmp_path):
    """Beside 15 clusters of two pairs, a cluster of 20 is the only one that is broken up."""
    twos = [(f"source{n}{letter}", f"shared{n}") for n in range(15) for letter in "ab"]
    alone = [(f"left{n}", f"right{n}") for n in range(300)]
    cluster = [(f"member{n}", "hub") for n in range(20)]
    before = relation_items(tmp_path / "few.csv", [*twos, *alone])
    train, known, test = relation_items(tmp_path / "all.csv", [*twos, *alone, *cluster])
    fitted = {word for pair in (*train, *known) for word in pair}
    assert [pair for pair in test if fitted & set(pair)] == [pair for pair in test if pair in cluster]
    assert 0 < len(set(test) & set(cluster)) < 20
    # the pairs of other groups are where they were
    assert [pair for pair in test if pair not in cluster] == before[2]


def test_borders_in_both_directions_are_held_out_with_their_reverse(tmp_path):
    """A chain of 60 borders in both directions links all sources, so only reversed pairs stay together."""
    borders = [(f"land{n}", f"land{n + 1}") for n in range(60)]
    train, known, test = relation_items(
        tmp_path / "borders.csv", [*borders, *(pair[::-1] for pair in borders)]
    )
    assert len(test) == 2 * len({frozenset(pair) for pair in test}) and 6 <= len(test) <= 48
    assert not {frozenset(pair) for pair in test} & {frozenset(pair) for pair in (*train, *known)}


def test_hypernyms_and_their_reverses(tmp_path):
    """Three classes of 40 nouns, in both directions; pairs of a class of 5 keep together."""
    pairs = [(f"noun{n}", f"class{n % 3}") for n in range(120)] + [(f"odd{n}", "small") for n in range(5)]
    train, known, test = relation_items(tmp_path / "classes.csv", [*pairs, *(pair[::-1] for pair in pairs)])
    assert not {frozenset(pair) for pair in test} & {frozenset(pair) for pair in (*train, *known)}
    assert {f"class{n}" for n in range(3)} <= {word for pair in test for word in pair}
    assert sum("small" in pair for pair in test) in (0, 10)
    assert 25 <= len(test) <= 75


def test_pairs_of_one_source_keep_together_where_they_can():
    """May -> June, May -> Jun: the source links few pairs, the words of all months link all."""
    items = load_task("relation:next-month-or-day").items()
    held_out = {last_line(item).casefold() for item in items.test}
    assert held_out and not held_out & {last_line(item).casefold() for item in (*items.train, *items.known)}


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
