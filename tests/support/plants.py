"""Small models with planted head roles, in Llama and in GPT-2 form, their weights written by hand.

Language. Words 0..7 are answers, word 8 asks for the answer itself, word 9 for the next one (after 7 comes
0), word 10 is unknown. A row is (answer, question, target); it is predicted at the question.

Stream. Half of the channels hold x, the other half −x, so that its mean is 0 and GPT-2's norm has nothing to
subtract. x has a ballast of 1000 in one channel; blocks of eight channels: ANSWER (which answer a token is),
NOTE and OUT; flags: is an answer, is question 8, is question 9. The mean square of the stream is
2(1000² + |x|²)/64, where x without ballast has |x|² < 1000 in all plants. Every norm has the weight
√(2·1000²/64), so that it puts out x/√(1 + |x|²/1000²): x itself, but for a share of 5e-4 at most. MLPs write
nothing, positions say nothing (GPT-2 has a table of zeros; Llama's queries and keys use the slowest pair of
channels, which turns by 3e-4 radians from one token to the next).

Heads. Four in each layer. A head asks with the question's flag, and answers have keys: a score of 20 or −20
(−20: the question that the head does not heed) against 0 for the question itself. So at the question a head
looks at the answer and nowhere else (but for e⁻²⁰) or not at all, and at the answer it looks at the answer.
Its value is a weighted sum of blocks; that, times its strength, goes to a block, shifted by one place if the
head errs. A head that is not written down reads answers and writes nothing: it is dead.

Loss. OUT is read as logits: with the target at t, the answer after it at r and the 9 other words at 0, the
loss is log(eᵗ + eʳ + 9) − t: log 11 = 2.398 at t = r = 0, 0.0245 at t = 6, 0.0034 at t = 8.

What gating makes of it. Gates g act on strengths. The free fit opens what lowers the loss and shuts what
raises it. A pressed gate of logit l comes to rest where the slope of the loss along l, which is
(slope along g)·g(1 − g), equals the pressure per head p (0.1 / 4 in one layer, 0.1 / 8 in two), or at the
bounds of l, ±4 (g = 0.018 or 0.982). Each plant below says what follows. `Plant.truth` is the role that each
head must get; `Plant.rests` are the G+ and G− so found, by solving those equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from headatlas.model import Model, load_model
from headatlas.task import Row
from support.planted import blank_llama, word_tokenizer

__all__ = ["ANSWERS", "EXCEPTIONS", "FORMS", "PLANTS", "ROLES", "SAME", "WORDS", "Case", "Plant", "Wiring"]

ANSWERS, SAME, NEXT, WORDS = 8, 8, 9, 11
FORMS = ("llama", "gpt2")
ROLES = ("facilitating", "interfering", "irrelevant")
HEADS, WIDTH = 4, 16
_HALF = HEADS * WIDTH // 2
_BALLAST, _SCORE = 1000.0, 20.0
#: first channel of each block of eight, and the channels of the flags
ANSWER, NOTE, OUT = 0, 8, 16
_IS_ANSWER, _IS_SAME, _IS_NEXT, _BALLAST_AT = 24, 25, 26, 27

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a head reads (block and weight), where it writes, how strongly (by answer, if it differs), how far
    shifted, and which questions it heeds."""

    strength: float | Sequence[float]
    reads: tuple[tuple[int, float], ...] = ((ANSWER, 1.0),)
    writes: int = OUT
    shift: int = 0
    heeds: tuple[int, ...] = (SAME, NEXT)


@dataclass(frozen=True, slots=True)
class Case:
    """With these heads alone, the logits of the target and of the answer after it (by answer, if needed)."""

    on: frozenset[Place]
    target: float | Sequence[float]
    after: float | Sequence[float] = 0.0

    def losses(self) -> np.ndarray:
        """[answer]"""
        target, after = (np.broadcast_to(value, ANSWERS) for value in (self.target, self.after))
        return np.asarray(np.log(np.exp(target) + np.exp(after) + 9) - target)


@dataclass(frozen=True, slots=True)
class Plant:
    """A model and a task. `truth` names the living heads; all others are irrelevant.

    `promised`: gating must give the truth in every seed. Where it does not, `story` says why.
    """

    name: str
    story: str
    heads: Mapping[Place, Wiring]
    truth: Mapping[Place, str]
    cases: Sequence[Case]
    #: (G+, G−) of heads, where they follow from an equation that can be solved on paper
    rests: Mapping[Place, tuple[float, float]] = field(default_factory=dict)
    layers: int = 1
    question: int = SAME
    promised: bool = True

    @property
    def rows(self) -> list[Row]:
        shift = int(self.question == NEXT)
        return [Row((word, self.question, (word + shift) % ANSWERS), 2) for word in range(ANSWERS)]

    def roles(self) -> np.ndarray:
        """[layer, head]"""
        found = np.full((self.layers, HEADS), "irrelevant", dtype="<U12")
        for place, role in self.truth.items():
            found[place] = role
        return found

    def gates(self, on: Sequence[Place] | frozenset[Place]) -> Tensor:
        """[layer, head]: one for these heads, nought for the others."""
        found = torch.zeros(self.layers, HEADS)
        for place in on:
            found[place] = 1
        return found

    def build(self, form: str, *, check: bool = False) -> Model:
        hf, parts = _EMPTY[form](self.layers)
        with torch.no_grad():
            _fill(parts, self.heads)
        return load_model(hf, tokenizer=word_tokenizer(WORDS - 1), check=check)


# The two forms: a model of zeros, and its parts under common names


@dataclass(frozen=True, slots=True)
class _Parts:
    """Weights of a model, all as [to, from]; `query`, `key`, `value` and `output` layer by layer."""

    embedding: Tensor
    unembedding: Tensor
    norms: list[Tensor]
    query: list[Tensor]
    key: list[Tensor]
    value: list[Tensor]
    output: list[Tensor]


def _llama(layers: int) -> tuple[Any, _Parts]:
    hf = blank_llama(WORDS, 2 * _HALF, HEADS, WIDTH, layers)
    blocks = hf.model.layers
    norms = [
        norm.weight for block in blocks for norm in (block.input_layernorm, block.post_attention_layernorm)
    ]
    return hf, _Parts(
        hf.model.embed_tokens.weight,
        hf.lm_head.weight,
        [*norms, hf.model.norm.weight],
        query=[block.self_attn.q_proj.weight for block in blocks],
        key=[block.self_attn.k_proj.weight for block in blocks],
        value=[block.self_attn.v_proj.weight for block in blocks],
        output=[block.self_attn.o_proj.weight for block in blocks],
    )


def _gpt2(layers: int) -> tuple[Any, _Parts]:
    config = GPT2Config(
        vocab_size=WORDS,
        n_embd=2 * _HALF,
        n_head=HEADS,
        n_layer=layers,
        n_inner=8,
        n_positions=16,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    hf = GPT2LMHeadModel(config).eval().requires_grad_(False)
    for weight in hf.parameters():
        weight.zero_()
    blocks = hf.transformer.h
    norms = [norm.weight for block in blocks for norm in (block.ln_1, block.ln_2)]
    # Conv1D keeps [from, to], with query, key and value side by side; these are views
    thirds = [block.attn.c_attn.weight.detach().T.chunk(3) for block in blocks]
    return hf, _Parts(
        hf.transformer.wte.weight,
        hf.lm_head.weight,
        [*norms, hf.transformer.ln_f.weight],
        query=[query for query, _, _ in thirds],
        key=[key for _, key, _ in thirds],
        value=[value for _, _, value in thirds],
        output=[block.attn.c_proj.weight.detach().T for block in blocks],
    )


_EMPTY: dict[str, Callable[[int], tuple[Any, _Parts]]] = {"llama": _llama, "gpt2": _gpt2}


def _fill(parts: _Parts, heads: Mapping[Place, Wiring]) -> None:
    answers = torch.arange(ANSWERS)
    for norm in parts.norms:
        norm.fill_((2 * _BALLAST**2 / (2 * _HALF)) ** 0.5)
    x = parts.embedding[:, :_HALF]
    x[:, _BALLAST_AT] = _BALLAST
    x[answers, ANSWER + answers] = 1
    x[answers, _IS_ANSWER] = 1
    x[SAME, _IS_SAME] = x[NEXT, _IS_NEXT] = 1
    parts.embedding[:, _HALF:] = -x
    parts.unembedding[answers, OUT + answers] = 1
    for layer in range(len(parts.query)):
        for head in range(HEADS):
            _wire(parts, layer, head, heads.get((layer, head), Wiring(0.0)))


def _wire(parts: _Parts, layer: int, head: int, wiring: Wiring) -> None:
    answers, first = torch.arange(ANSWERS), head * WIDTH
    slowest = first + WIDTH // 2 - 1
    for question, flag in ((SAME, _IS_SAME), (NEXT, _IS_NEXT)):
        heeded = 1 if question in wiring.heeds else -1
        parts.query[layer][slowest, flag] = heeded * _SCORE * WIDTH**0.5  # attention divides by that root
    parts.key[layer][slowest, _IS_ANSWER] = 1
    for block, weight in wiring.reads:
        parts.value[layer][first + answers, block + answers] = weight
    strength = torch.as_tensor(wiring.strength, dtype=torch.float32).expand(ANSWERS)
    to = wiring.writes + (answers + wiring.shift) % ANSWERS
    parts.output[layer][to, first + answers] = strength
    parts.output[layer][_HALF + to, first + answers] = -strength


# The plants


def _on(*places: Place) -> frozenset[Place]:
    return frozenset(places)


A, B, C, D = (0, 0), (0, 1), (1, 0), (1, 1)

BASIC = Plant(
    name="copy and mistake",
    story="""L0H0 copies the answer with strength 6, L0H1 the answer after it with strength 9: t = 6 g0, r
    = 9 g1. Free: g0 up, g1 down. Remove (p = 0.025), g1 = 0.018: rest of g0 at 6·(1 − P(target))·g(1 − g)
    = p, that is 0.90. Retain, g0 = 0.982: rest of g1 at 9·P(after)·g(1 − g) = p, that is 0.21: the head
    stays shut.""",
    heads={A: Wiring(6), B: Wiring(9, shift=1)},
    truth={A: "facilitating", B: "interfering"},
    cases=(Case(_on(), 0), Case(_on(A), 6), Case(_on(B), 0, 9), Case(_on(A, B), 6, 9)),
    rests={A: (0.982, 0.896), B: (0.206, 0.018), (0, 2): (0.982, 0.018), (0, 3): (0.982, 0.018)},
)

EVEN, ODD = (9.0, 7.0) * 4, (7.0, 9.0) * 4
REDUNDANT = Plant(
    name="redundant pair",
    story="""Both heads copy the answer, one with 9 for even and 7 for odd answers, the other the other
    way round: t = 8 (g0 + g1) ± (g0 − g1). One alone gives 7 or 9, the answer is on top, and the loss is
    0.005 on average; both give 16 and 1e-6. So cutting one costs 0.005: single ablation calls both
    irrelevant. Remove (p = 0.025). An even split would rest at 8 (1 − P(target)) g(1 − g) = p with t = 16
    g, that is 0.42. But moving the two logits apart by d each lowers the loss by 8 (1 − P(target)) g(1 −
    g)(1 − 2g) d², and the pressure does not mind: below g = 1/2 the even split is a ridge. It ends with
    one gate at 0.018 and the other where a head alone would rest (0.79). Which one, the free fit and the
    order of the rows decide, thus the seed. EXCEPTION: in each seed exactly one of them is facilitating
    and the other irrelevant. Any names both as soon as both kinds of seed occur, and Always then neither.""",
    heads={A: Wiring(EVEN), B: Wiring(ODD)},
    truth={A: "facilitating", B: "facilitating"},
    cases=(Case(_on(), 0), Case(_on(A), EVEN), Case(_on(B), ODD), Case(_on(A, B), 16)),
    promised=False,
)

TOGETHER = Plant(
    name="AND pair",
    story="""L0H0 writes the answer as a note with strength 2; L1H0 reads notes, not answers, and writes
    them with strength 4: t = 8 g0 g1. One alone: 0. Free: both up, for the slope along each is 8 times
    the other gate. Remove (p = 0.0125): both rest at 8 (1 − P(target)) g²(1 − g) = p, that is 0.89.""",
    heads={A: Wiring(2, writes=NOTE), C: Wiring(4, reads=((NOTE, 1.0),))},
    truth={A: "facilitating", C: "facilitating"},
    cases=(Case(_on(), 0), Case(_on(A), 0), Case(_on(C), 0), Case(_on(A, C), 8)),
    rests={A: (0.982, 0.888), C: (0.982, 0.888), B: (0.982, 0.018), D: (0.982, 0.018)},
    layers=2,
)

_TWO_TASKS = {A: Wiring(6, heeds=(SAME,)), B: Wiring(6, shift=1, heeds=(NEXT,))}
_TASKS_STORY = """L0H0 copies the answer where question 8 is asked, L0H1 writes the next answer where question
    9 is asked; at the other question each looks at the question itself, which has no answer to give. So t
    = 6 g0 in the one task and 6 g1 in the other. Of the head in charge G− is 0.895 (as above, with nobody
    erring); the other head does nothing."""

TASK_SAME = Plant(
    name="one of two tasks: same",
    story=_TASKS_STORY,
    heads=_TWO_TASKS,
    truth={A: "facilitating", B: "irrelevant"},
    cases=(Case(_on(), 0), Case(_on(A), 6), Case(_on(B), 0), Case(_on(A, B), 6)),
    rests={A: (0.982, 0.895), B: (0.982, 0.018)},
)
TASK_NEXT = Plant(
    name="one of two tasks: next",
    story=_TASKS_STORY,
    heads=_TWO_TASKS,
    truth={A: "irrelevant", B: "facilitating"},
    cases=(Case(_on(), 0), Case(_on(A), 0), Case(_on(B), 6), Case(_on(A, B), 6)),
    rests={A: (0.982, 0.018), B: (0.982, 0.895)},
    question=NEXT,
)

BACKUP = Plant(
    name="backup",
    story="""L0H0 copies the answer with strength 8, at the answer too. L1H0 looks there and takes an
    eighth of what it finds written from the answer, so it copies with strength 6 what is missing: t = 8
    g0 + 6 g1 (1 − g0). Both on: 8; the backup alone: 6. Cutting the first head costs 0.0245 − 0.0034 =
    0.021: single ablation misses it. Free: both up, for the slopes are 8 − 6 g1 and 6 (1 − g0), both
    positive. Remove (p = 0.0125): both fall, but at equal gates the first head's slope 8 − 6 g is larger
    than the backup's 6 − 6 g, so it stops first; the backup goes on to 0.018, the first comes back to
    rest at 8 (1 − P(target)) (1 − 0.75·0.018) g(1 − g) = p, that is 0.84. (First shut and backup at 0.93
    is a resting place too, but the worse one, and the free fit, which opens both, does not lead there.)""",
    heads={A: Wiring(8), C: Wiring(6, reads=((ANSWER, 1.0), (OUT, -0.125)))},
    truth={A: "facilitating", C: "irrelevant"},
    cases=(Case(_on(), 0), Case(_on(A), 8), Case(_on(C), 6), Case(_on(A, C), 8)),
    rests={A: (0.982, 0.84), C: (0.982, 0.018)},
    layers=2,
)

PLANTS = {plant.name: plant for plant in (BASIC, REDUNDANT, TOGETHER, TASK_SAME, TASK_NEXT, BACKUP)}

TWINS = Plant(
    name="twins",
    story="""Two heads that do exactly the same, with strength 6: t = 6 (g0 + g1). An even split rests at
    6 (1 − P(target)) g(1 − g) = p with t = 12 g, that is 0.53: above 1/2, so that here, other than in the
    redundant pair, it is a valley. One shut and the other at 0.89 is a valley as well. EXCEPTION: a seed
    that comes down near the even split ends there, and both are facilitating by a hair; any other has one
    of them. (Twins of strength 8 have the ridge of the redundant pair at 0.42; but if the free fit brings
    both logits to the bound they are equal ever after, stay on the ridge, and neither is facilitating.
    Rounding may end that.)""",
    heads={A: Wiring(6), B: Wiring(6)},
    truth={A: "facilitating", B: "facilitating"},
    cases=(Case(_on(), 0), Case(_on(A), 6), Case(_on(B), 6), Case(_on(A, B), 12)),
    promised=False,
)

OVERKILL = Plant(
    name="overkill",
    story="""One head copies the answer with strength 24, four times what is enough. Without it the loss
    is 2.398, so it is needed; but a third of it is enough: remove rests at 24 (1 − P(target)) g(1 − g) =
    0.025, that is 0.32. EXCEPTION: facilitation is how far a gate has to stay open, not what the head is
    worth; the head is called irrelevant in every seed.""",
    heads={A: Wiring(24)},
    truth={A: "facilitating"},
    cases=(Case(_on(), 0), Case(_on(A), 24)),
    rests={A: (0.982, 0.319)},
    promised=False,
)

#: plants made to show where the definition of the roles ends
EXCEPTIONS = {plant.name: plant for plant in (TWINS, OVERKILL)}
