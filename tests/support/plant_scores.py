"""How well do methods find planted roles? Shared by the tests and by bench/plants.py.

Gating names roles by its own scores, seed by seed. The others give an effect in nats, of which `CLEAR` makes
a role: above it the head is facilitating, below −`CLEAR` interfering, else irrelevant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.stats import rankdata

from headatlas.atlas.roles import role_scores, roles_of
from headatlas.method import GatingSettings
from headatlas.method.engine.ablate import ablate
from headatlas.method.engine.attribute import attribute, integrate
from headatlas.method.gating import Stage
from headatlas.model import Model
from support.plants import ROLES, Plant

__all__ = [
    "CLEAR",
    "SEEDS",
    "Counts",
    "Finding",
    "auroc",
    "by_effect",
    "by_gating",
    "counts",
    "findings",
    "long_settings",
]

CLEAR = 0.05
SEEDS = range(4)
DRAWS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What a method says: `importance` [layer, head], signed, and roles [answer, layer, head], one answer for
    each seed or draw."""

    method: str
    importance: np.ndarray
    roles: np.ndarray


def long_settings(objective: str = "bounded", updates: int = 500) -> GatingSettings:
    """The published schedule; half of a plant's rows at a time, so that seeds differ in what they see."""
    stages = Stage(updates, 0.1, 0.01), Stage(updates, 0.5, 0.1)
    return GatingSettings(objective, *stages, batch=4, seeds=len(SEEDS))


def by_gating(gates: xr.DataArray, name: str = "gating") -> list[Finding]:
    """Two: roles seed by seed, and those of Any: what some seed calls a head."""
    scores = role_scores(gates)
    importance = (scores["facilitation"] - scores["interference"]).mean("seed").values
    helps, hurts = (scores[score].max("seed").values >= 0.5 for score in ("facilitation", "interference"))
    anywhere = np.where(helps, ROLES[0], np.where(hurts, ROLES[1], ROLES[2]))
    return [
        Finding(name, importance, roles_of(scores).values),
        Finding(f"{name}, any seed", importance, anywhere[None]),
    ]


def by_effect(name: str, effects: np.ndarray) -> Finding:
    """From effects [layer, head], or [draw, layer, head]."""
    each = effects.reshape(-1, *effects.shape[-2:])
    roles = np.where(each > CLEAR, ROLES[0], np.where(each < -CLEAR, ROLES[1], ROLES[2]))
    return Finding(name, each if effects.ndim == 3 else effects, roles)


def findings(model: Model, plant: Plant, gates: xr.DataArray) -> list[Finding]:
    """All methods on one plant; `random` draws effects of which a third each makes every role."""
    rows = plant.rows
    drawn = np.random.default_rng(0).uniform(-3 * CLEAR, 3 * CLEAR, (DRAWS, *model.spec.shape))
    return [
        *by_gating(gates),
        by_effect("ablate zero", ablate(model, rows, "zero").values),
        by_effect("ablate mean", ablate(model, rows, "mean").values),
        by_effect("attribute gradient", attribute(model, rows).values),
        by_effect("attribute integrated", integrate(model, rows).values),
        by_effect("random", drawn),
    ]


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The chance that one of the positive has the higher score than one of the rest, ties counting half; the
    mean over draws if `scores` has an axis more than `positive`. NaN if there is nothing to tell apart."""
    if scores.ndim > positive.ndim:
        return float(np.mean([auroc(draw, positive) for draw in scores]))
    good, bad = int(positive.sum()), int((~positive).sum())
    if not good or not bad:
        return float("nan")
    ranks = rankdata(scores.ravel())[positive.ravel()]
    return float((ranks.sum() - good * (good + 1) / 2) / (good * bad))


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one role: heads that have it and get it, that get it, that have it; over seeds, plants, draws."""

    right: int
    named: int
    true: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.right + other.right, self.named + other.named, self.true + other.true)

    @property
    def precision(self) -> float:
        return self.right / self.named if self.named else float("nan")

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else float("nan")


def counts(found: Finding, truth: np.ndarray, roles: Sequence[str] = ROLES) -> dict[str, Counts]:
    """By role. What gating calls unclear or an anomaly is no role: it lowers recall."""
    everywhere = np.broadcast_to(truth, found.roles.shape)
    return {
        role: Counts(
            int(((found.roles == role) & (everywhere == role)).sum()),
            int((found.roles == role).sum()),
            int((everywhere == role).sum()),
        )
        for role in roles
    }
