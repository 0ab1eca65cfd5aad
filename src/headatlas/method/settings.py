"""How gates are fitted: the schedule, as published and as we found it to be worth its price."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from headatlas.core import RequestError, UnknownNameError

__all__ = ["OBJECTIVES", "PRESETS", "GatingSettings", "Stage", "resolve"]

#: `paper`: the logit of a gate is free, its pressure ends at ±4. `bounded`: the logit is kept in [-4, 4],
#: so that no gate can drift to where pressure no longer reaches it.
OBJECTIVES = ("paper", "bounded")


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


@dataclass(frozen=True, slots=True)
class GatingSettings:
    """One way to fit gates. `pressed` is the schedule of retain and of remove."""

    objective: str
    free: Stage
    pressed: Stage
    batch: int
    seeds: int
    pressure: float = 0.1
    clip: float = 1.0
    limit: float = 4.0
    start: tuple[float, float] = (0.0, 1.0)
    momentum: tuple[float, float] = (0.9, 0.999)
    average: float = 0.0
    held_out: int = 256

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownNameError("objective", self.objective, OBJECTIVES)
        for name in ("batch", "seeds"):
            if getattr(self, name) < 1:
                raise RequestError(f"{name} is {getattr(self, name)}; at least 1 is needed.")
        for name in ("free", "pressed"):
            if getattr(self, name).updates < 1:
                raise RequestError(f"updates is {getattr(self, name).updates}; at least 1 is needed.")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GatingSettings:
        known = {field.name for field in fields(cls)}
        stages = {name: Stage(**data[name]) for name in ("free", "pressed")}
        return cls(**{**{key: value for key, value in data.items() if key in known}, **stages})


PRESETS = {
    "paper": GatingSettings("paper", Stage(500, 0.1, 0.01), Stage(500, 0.5, 0.1), batch=64, seeds=10),
    "quick": GatingSettings("bounded", Stage(60, 1.0, 0.3), Stage(60, 1.0, 0.3), batch=16, seeds=3),
}


def resolve(
    preset: str = "quick",
    *,
    seeds: int | None = None,
    updates: int | None = None,
    batch: int | None = None,
    objective: str | None = None,
    pressure: float | None = None,
) -> GatingSettings:
    """A preset, with what was asked for changed."""
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    chosen = PRESETS[preset]
    given: dict[str, Any] = {
        "seeds": seeds,
        "batch": batch,
        "objective": objective,
        "pressure": pressure,
    }
    if updates is not None:
        given |= {name: replace(getattr(chosen, name), updates=updates) for name in ("free", "pressed")}
    return replace(chosen, **{key: value for key, value in given.items() if value is not None})
