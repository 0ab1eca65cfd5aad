"""Causal head gating: its settings, its presets, and the method itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, cast

from headatlas.core import (
    NLL,
    Metric,
    Options,
    UnknownNameError,
    metric_to_json,
    require_metric,
    require_seeds,
    require_whole,
)
from headatlas.method.method import MOST_SEEDS, Method

__all__ = [
    "OBJECTIVES",
    "PRESETS",
    "PROVIDES",
    "STAGES",
    "TARGETS_PER_BATCH",
    "GatingSettings",
    "Stage",
    "resolve",
]

#: `paper`: the logit of a gate is free, its pressure ends at ±4. `bounded`: the logit is kept in [-4, 4],
#: so that no gate can drift to where pressure no longer reaches it.
OBJECTIVES = ("paper", "bounded")
#: the two stages of a fit, and what is fitted in each
STAGES = {"free": ("free",), "pressed": ("retain", "remove")}
#: what a gradient is worth depends on the target tokens behind it, not on the rows
TARGETS_PER_BATCH = 36
_ROWS = 2, 12
_MOST = {"batch": 100_000, "updates": 1_000_000}


@dataclass(frozen=True, slots=True)
class Stage:
    """So many updates, with a rate that goes from one value to the other in a straight line."""

    updates: int
    rate: float
    last_rate: float

    def rate_at(self, update: int) -> float:
        if self.updates < 2:
            return self.rate
        return self.rate + (self.last_rate - self.rate) * update / (self.updates - 1)


@dataclass(frozen=True)
class GatingSettings(Options):
    """One way to fit gates.

    `seeds` is a count or a list of seed numbers. `pressed` is the schedule of retain and of remove. `batch`
    is the number of rows per update and gate set; None means as many as hold about `TARGETS_PER_BATCH` target
    tokens, 2 to 12. `start` is the range that the gates of the free fit are drawn from, `held_out` the number
    of rows that finished gates are measured on. With `push` the pressure of remove begins so many times
    stronger and falls in a straight line to its value: few updates are then enough to shut what nobody needs.
    `metric` is the loss of a row (`headatlas.core.metrics`).
    """

    objective: str
    free: Stage
    pressed: Stage
    batch: int | None
    seeds: int | tuple[int, ...]
    pressure: float = 0.1
    push: float = 1.0
    clip: float = 1.0
    limit: float = 4.0
    start: tuple[float, float] = (0.0, 1.0)
    momentum: tuple[float, float] = (0.9, 0.999)
    held_out: int = 256
    metric: Metric = NLL

    def __post_init__(self) -> None:
        require_metric(self.metric)
        if self.objective not in OBJECTIVES:
            raise UnknownNameError("objective", self.objective, OBJECTIVES)
        object.__setattr__(self, "seeds", require_seeds(self.seeds, MOST_SEEDS))
        if self.batch is not None:
            object.__setattr__(self, "batch", require_whole("batch", self.batch, 1, _MOST["batch"]))
        for name in ("free", "pressed"):
            stage = getattr(self, name)
            updates = require_whole("updates", stage.updates, 1, _MOST["updates"])
            object.__setattr__(self, name, replace(stage, updates=updates))

    def for_targets(self, tokens: float) -> GatingSettings:
        """With a batch, for a task whose targets have so many tokens on average."""
        if self.batch is not None:
            return self
        least, most = _ROWS
        return replace(self, batch=min(most, max(least, round(TARGETS_PER_BATCH / tokens))))

    @classmethod
    def of(cls, **given: Any) -> Self:
        """A preset with changes, as `resolve`."""
        return cast("Self", resolve(**given))

    @classmethod
    def names(cls) -> list[str]:
        return ["preset", "seeds", "updates", "batch", "objective", "metric"]

    def to_json(self) -> dict[str, Any]:
        """The default metric is left out, as in atlases written before metrics existed."""
        data = asdict(replace(self, metric=NLL))
        if self.metric == NLL:
            del data["metric"]
            return data
        return {**data, "metric": metric_to_json(self.metric)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GatingSettings:
        found: dict[str, Any] = dict(data)
        for name in ("free", "pressed"):
            found[name] = Stage(**found[name])
        for name in ("start", "momentum"):
            found[name] = tuple(found[name])
        return cls(**found)


PRESETS = {
    "paper": GatingSettings("paper", Stage(500, 0.1, 0.01), Stage(500, 0.5, 0.1), batch=64, seeds=10),
    "quick": GatingSettings(
        "bounded",
        Stage(25, 0.5, 0.15),
        Stage(50, 0.5, 0.1),
        batch=None,
        seeds=3,
        push=2.0,
        clip=0.1,
        start=(0.5, 1.0),
        momentum=(0.8, 0.999),
        held_out=48,
    ),
}


def resolve(
    preset: str = "quick",
    *,
    seeds: int | Sequence[int] | None = None,
    updates: int | None = None,
    batch: int | None = None,
    objective: str | None = None,
    metric: Metric | None = None,
) -> GatingSettings:
    """A preset, with what was asked for changed."""
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    chosen = PRESETS[preset]
    given: dict[str, Any] = {
        "seeds": seeds,
        "batch": batch,
        "objective": objective,
        "metric": metric,
    }
    if updates is not None:
        given |= {name: replace(getattr(chosen, name), updates=updates) for name in ("free", "pressed")}
    return replace(chosen, **{key: value for key, value in given.items() if value is not None})


def _fit(
    model: Any,
    rows: Any,
    options: GatingSettings,
    stage: str,
    sets: Sequence[tuple[int, str]],
    finished: Callable[[int, str], Any],
    name: str,
) -> Any:
    """The free stage starts at random, the others where the free fit of their seed ended."""
    import numpy as np
    import torch

    from headatlas.method.engine.gate_fit import GateFit, random_starts
    from headatlas.method.engine.objective import Pressure

    seeds = [seed for seed, _ in sets]
    if stage == "free":
        starts = random_starts(model, options, seeds)
    else:
        starts = torch.from_numpy(np.stack([finished(seed, "free") for seed in seeds]))
    return GateFit(model, Pressure(model, rows, options, stage, sets), starts, name=name)


PROVIDES = [
    Method(
        "gating",
        "Causal head gating",
        "gates learned on all heads: which are needed, which are in the way, which do not matter",
        GatingSettings,
        fit=_fit,
        stages=STAGES,
        version=2,
        unit="gate",
    )
]
