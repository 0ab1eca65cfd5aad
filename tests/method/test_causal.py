"""`causal_check` on a model that answers questions by heads that were planted.

Words w1 … w31 in a cycle; the question is "w_i w0" and the answer w_i+1 (w31 is followed by w1). The text
before it has worked examples, of which the tokeniser knows no answer ("w4." is no word).

    layer 0   head 0 notes, wherever it is, which word stands there
              heads 1 to 3 do nothing
    layer 1   head 0 looks at the position before, reads the note and writes the word after it
              heads 1 to 3 do nothing

So at the last position (w0) only L1H0 is needed. L0H0 is needed too, but one position before.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import xarray as xr
from tokenizers.pre_tokenizers import Punctuation, Sequence, WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from headatlas import FitError, Head, RequestError, gates, load_model
from headatlas.method.relation.causal_check import accuracy, causal_check, questions
from headatlas.method.relation.scorer import relations_for
from headatlas.task import Relation
from support.planted import blank_llama, word_tokenizer
from support.relations import relation_of

WORDS = 32
CYCLE = [(word, word % 31 + 1) for word in range(1, WORDS)]
NEXT = relation_of("next", CYCLE, prompt="{source} w0")


@pytest.fixture(scope="module")
def model():
    """The stream: channels 0 … 31 the word that is there, 32 … 63 the note, 64 … 95 the answer."""
    hf = blank_llama(WORDS + 1, 96, 4, WORDS, layers=2, max_position_embeddings=64, attention_bias=True)
    word, note, answer = (slice(start, start + WORDS) for start in (0, 32, 64))
    hf.model.embed_tokens.weight[:WORDS, word] = torch.eye(WORDS)
    hf.lm_head.weight[:WORDS, answer] = 20 * torch.eye(WORDS)
    for block, behind in zip(hf.model.layers, (0, 1), strict=True):
        # rotary positions turn channels 0 and 16 of a head by one radian per position; the key is always the
        # same and the query the key turned back, so that they meet `behind` positions before
        for head in range(4):
            start = WORDS * head
            block.self_attn.k_proj.bias[start] = 200
            block.self_attn.q_proj.bias[start] = 200 * math.cos(behind)
            block.self_attn.q_proj.bias[start + 16] = -200 * math.sin(behind)
    first, second = (block.self_attn for block in hf.model.layers)
    own = slice(0, WORDS)  # head 0
    first.v_proj.weight[own, word] = torch.eye(WORDS)
    first.o_proj.weight[note, own] = torch.eye(WORDS)
    second.v_proj.weight[own, note] = torch.eye(WORDS)
    for source, target in CYCLE:
        second.o_proj.weight[64 + target, source] = 1
    return load_model(hf, tokenizer=word_tokenizer(WORDS))


def scores(*best, **others):
    """Hand-made scores: of "next" the heads `best`, by falling score; of other relations likewise."""
    names = {"next": best, **others}
    values = np.zeros((len(names), 2, 2, 4), dtype=np.float32)
    for place, heads in enumerate(names.values()):
        for rank, (layer, head) in enumerate(heads):
            values[place, 0, layer, head] = 0.9 - 0.1 * rank
            values[place, 1, layer, 3 - head] = 1  # suppression has no say
    return xr.DataArray(
        values,
        dims=["relation", "direction", "layer", "head"],
        coords={"relation": list(names), "direction": ["promote", "suppress"]},
    )


CARRIES, NOTES, IDLE = (1, 0), (0, 0), (0, 2)


def test_the_model_does_what_it_was_made_for(model):
    (ready,) = relations_for(model, NEXT)
    for row in questions(model, ready):
        logits = model.hf(input_ids=torch.tensor([row.prompt])).logits[0, -1]
        assert int(logits.argmax()) == row.target[0] != 0
        with gates(model, {Head(*NOTES): 0}):  # everywhere
            logits = model.hf(input_ids=torch.tensor([row.prompt])).logits[0, -1]
        assert int(logits.argmax()) != row.target[0]


def test_the_planted_head_carries_the_relation(model):
    found = causal_check(model, scores(CARRIES, IDLE), NEXT, steps=(0, 1, 2), draws=4)
    assert found.relation == "next" and found.heads == (Head(1, 0), Head(0, 2)) and found.steps == (0, 1, 2)
    assert found.top == (1.0, 0.0, 0.0)
    assert found.random == ((1.0, 1.0, 1.0),) * 4  # drawn from all others, which are not needed there
    assert found.questions == 31 and found.controls == {}


def test_heads_are_switched_off_at_the_last_position_alone(model):
    """L0H0 is needed, but at the position before."""
    found = causal_check(model, scores(NOTES, IDLE), NEXT, steps=(0, 1, 2), draws=1)
    assert found.heads[0] == Head(0, 0) and found.top == (1.0, 1.0, 1.0)


def test_random_heads_are_drawn_from_the_others_as_many_as_of_the_top(model):
    """The four others, L1H0 among them: one draw of one hits it in four, and of four always."""
    found = causal_check(model, scores(IDLE, (0, 1), (0, 3), (1, 2)), NEXT, steps=(0, 1, 4), draws=30)
    assert found.top == (1.0, 1.0, 1.0)
    last = [draw[-1] for draw in found.random]
    once = [draw[1] for draw in found.random]
    assert set(last) == {0.0} and set(once) == {0.0, 1.0} and 0.5 < np.mean(once) < 0.95
    # what is off stays off: a draw that fell never rises again
    for draw in found.random:
        assert list(draw) == sorted(draw, reverse=True) and draw[0] == 1


def test_as_many_random_heads_as_top_heads_at_every_step(model, monkeypatch):
    """Eight heads, steps up to 6: there are not six others. A comparison with fewer would be unfair."""
    off = []
    plain = model.gates

    def watch(values, positions=None):
        off.append(int((torch.as_tensor(values) == 0).sum()))
        return plain(values, positions)

    monkeypatch.setattr(model, "gates", watch)
    found = causal_check(model, scores(CARRIES), NEXT, steps=(0, 2, 6), draws=3)
    curves = [off[start : start + len(found.steps)] for start in range(0, len(off), len(found.steps))]
    assert len(curves) == 4
    assert curves == [list(found.steps)] * 4


def test_a_control_is_something_that_the_model_can_do(model):
    """This one never copies: there is nothing to be lost."""
    copying = relation_of("same", [(word, word) for word in range(1, WORDS)], prompt="{source} w0")
    given = scores(CARRIES, same=[IDLE])
    assert causal_check(model, given, NEXT, controls=[copying], steps=(0, 1), draws=1).controls == {}


def test_controls_are_other_relations_with_other_heads(model, monkeypatch):
    """The same heads are off, another relation is asked."""
    from headatlas.method.relation import causal_check as causal

    monkeypatch.setattr(causal, "_KNOWN", 0.0)
    copying = relation_of("same", [(word, word) for word in range(1, WORDS)], prompt="{source} w0")
    also = relation_of("also next", CYCLE[::-1], prompt="{source} w0")
    unscored = relation_of("unscored", CYCLE[:30], prompt="{source} w0")
    given = scores(CARRIES, **{"same": [IDLE], "also next": [CARRIES]})
    found = causal_check(model, given, NEXT, controls=[copying, also, NEXT, unscored], steps=(0, 1), draws=1)
    # "also next" has the same top head, "unscored" none, "next" is the relation itself
    assert found.controls == {"same": (0.0, 0.0)}
    given = scores(IDLE, **{"also next": [CARRIES]})
    found = causal_check(model, given, NEXT, controls=[also], steps=(0, 1), draws=1)
    assert found.controls == {"also next": (1.0, 1.0)} and found.top == (1.0, 1.0)


def test_fewer_questions_progress_and_json(model):
    done = []
    found = causal_check(
        model, scores(CARRIES), NEXT, steps=(0, 1, 99), draws=2, most=5, progress=done.append
    )
    assert found.questions == 5 and found.steps == (0, 1)  # one head promotes it
    assert sum(done) == 3 * len(found.steps)
    assert found.to_json() == {
        "relation": "next", "heads": [str(head) for head in found.heads], "steps": list(found.steps),
        "top": list(found.top), "random": [list(draw) for draw in found.random], "controls": {},
        "questions": 5,
    }  # fmt: skip
    again = causal_check(model, scores(CARRIES), NEXT, steps=(0, 1, 99), draws=2, most=5)
    assert again == found


def test_a_relation_without_scores(model):
    other = relation_of("others", CYCLE)
    with pytest.raises(RequestError, match="no scores of 'others'"):
        causal_check(model, scores(CARRIES), other)


@pytest.fixture
def reader(model):
    """The same model with a tokeniser that takes full stops off words: answers of examples can be read."""
    tokenizer = word_tokenizer(WORDS)
    tokenizer._tokenizer.pre_tokenizer = Sequence([WhitespaceSplit(), Punctuation()])
    return load_model(model.hf, tokenizer=tokenizer, check=False)


STOP = WORDS  # what is no word


def test_questions(reader):
    """Three worked examples; none has the source that is asked for, nor a target that would be right."""
    pairs = [*CYCLE, (1, 9), (1, 8)]  # w1 has three right answers
    (ready,) = relations_for(reader, relation_of("r", pairs, prompt="{source} w0"))
    right = {}
    for source, target in pairs:
        right.setdefault(source, set()).add(target)
    asked = []
    for row in questions(reader, ready, most=99):
        assert len(row.prompt) == 14 and row.start == 14 and len(row.target) == 1
        shots = [row.prompt[start : start + 4] for start in (0, 4, 8)]
        source, zero = row.prompt[12:]
        assert zero == 0 and len(set(shots)) == 3
        for other, zero, target, stop in shots:
            assert (zero, stop) == (0, STOP) and (other, target) in pairs
            assert other != source and target not in right[source]
        asked.append((source, *row.target))
    assert sorted(asked) == sorted(pairs)
    some = questions(reader, ready, most=7)
    assert len(set(some)) == 7 and some == questions(reader, ready, most=7)


def test_questions_behind_the_first_token(model):
    tokenizer = word_tokenizer(WORDS)
    tokenizer._tokenizer.post_processor = TemplateProcessing(single="w0 $A", special_tokens=[("w0", 0)])
    with_first = load_model(model.hf, tokenizer=tokenizer, check=False)
    (ready,) = relations_for(with_first, NEXT)
    plain = questions(model, ready)
    for one, other in zip(questions(with_first, ready), plain, strict=True):
        assert one.ids == (0, *other.ids) and one.start == other.start + 1


def test_the_prompt_where_none_is_given(reader):
    (ready,) = relations_for(reader, relation_of("r", CYCLE))
    row = questions(reader, ready)[0]
    assert row.prompt[1:3] == (STOP, STOP)  # "->" is two signs here
    assert [row.prompt[place] for place in (4, 9, 14)] == [STOP] * 3 and len(row.prompt) == 18


def test_only_targets_of_one_token_are_asked_for(reader):
    pairs = [*((word, target) for word, target in CYCLE)]
    relation = Relation("r", (*relation_of("r", pairs).pairs, ("w0", "w5 w6")), prompt="{source} w0")
    (ready,) = relations_for(reader, relation)
    assert sorted(row.prompt[-2] for row in questions(reader, ready)) == [word for word, _ in CYCLE]
    few = Relation("few", (*relation_of("few", pairs[:29]).pairs, ("w0", "w5 w6")), prompt="{source} w0")
    (ready,) = relations_for(reader, few)
    with pytest.raises(RequestError, match=r"'few' cannot be asked of .*: 29 of its targets.* 30 are needed"):
        questions(reader, ready)


def test_when_memory_runs_out_passes_get_smaller(model, monkeypatch):
    (ready,) = relations_for(model, NEXT)
    rows, plain, sizes = questions(model, ready), model.logits_at, []
    wanted = accuracy(model, rows, [Head(*CARRIES)]), accuracy(model, rows, [])

    def tight(ids, *others):
        sizes.append(ids.numel())
        if ids.numel() > most:
            raise torch.OutOfMemoryError("fake")
        return plain(ids, *others)

    monkeypatch.setattr(model, "logits_at", tight)
    most = 40
    assert (accuracy(model, rows, [Head(*CARRIES)]), accuracy(model, rows, [])) == wanted
    assert max(sizes) > most >= min(sizes)
    most = 1
    with pytest.raises(FitError, match="one row at a time does not fit"):
        accuracy(model, rows, [])


def test_no_worked_example_gives_an_answer_away(model):
    """Each pair stands in the list both ways round: neither the question's pair nor its reverse is shown."""
    both = [pair for source, target in CYCLE for pair in ((source, target), (target, source))]
    (tokens,) = relations_for(model, [relation_of("other", both, prompt="{source} w0")])
    answers = {}
    for source, target in both:
        answers.setdefault(source, set()).add(target)
    for row in questions(model, tokens):
        source = row.ids[row.start - 2]
        assert not {source, *answers[source]} & set(row.ids[: row.start - 2])
