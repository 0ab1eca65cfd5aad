"""A method is a value: its name, its options, and the function that computes its numbers.

Modules directly in this folder declare methods in their list `PROVIDES`; plugins name such a module in an
entry point of the group `headatlas.methods`. Neither imports torch before a method is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from typing import Any, ClassVar

from headatlas.core import (
    METHOD_ORDER,
    NLL,
    ExtensionError,
    Metric,
    Options,
    method_name_problem,
    metric_to_json,
    require_metric,
    require_options,
    require_seeds,
    require_whole,
)
from headatlas.core.registry import Registry

__all__ = ["METHODS", "MOST_SEEDS", "EffectOptions", "Method", "MetricOptions"]

#: seeds of one request
MOST_SEEDS = 1000


@dataclass(frozen=True)
class EffectOptions(Options):
    """Options of a method that gives one number per head: each seed draws `items` training items. `seeds` is
    a count or a list of seed numbers.

    A method with other options subclasses this. `MOST` maps the names of counts to the largest allowed.
    """

    MOST: ClassVar[Mapping[str, int]] = {"seeds": MOST_SEEDS, "items": 100_000}

    seeds: int | tuple[int, ...] = 1
    items: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", require_seeds(self.seeds, self.MOST.get("seeds", MOST_SEEDS)))
        for name, most in self.MOST.items():
            if name == "seeds":
                continue
            object.__setattr__(self, name, require_whole(name, getattr(self, name), 1, most))


@dataclass(frozen=True)
class MetricOptions(EffectOptions):
    """Options of a method whose effects are differences of a metric: "nll", "logit_diff", "kl" or a function
    (logits, batch) -> [row]. See `headatlas.core.metrics`."""

    metric: Metric = NLL

    def __post_init__(self) -> None:
        super().__post_init__()
        require_metric(self.metric)

    def to_json(self) -> dict[str, Any]:
        """The default metric is left out, as in atlases written before metrics existed."""
        data = asdict(replace(self, metric=NLL))
        if self.metric == NLL:
            del data["metric"]
            return data
        return {**data, "metric": metric_to_json(self.metric)}


@dataclass(frozen=True, slots=True)
class Method:
    """A way to ask what heads do to a task.

    It either measures or fits. `measure(model, rows, *, options, seed, progress)` returns `HeadEffects`, a
    number per head. With `decide(rows)`, which sees all rows that a seed may draw, `measure` also takes its
    result as `decided`; it is stored, and numbers depend on it. `remark(rows)` may explain that decision.

    `fit(model, rows, options, stage, sets, finished, name)` returns a `GateFit` of the gate sets (seed, fit)
    of one of the `stages` (stage -> its fits); `finished(seed, fit)` gives the logits of an earlier stage.

    `constants` are settings of the code that numbers depend on. Raise `version` when the same request gives
    other numbers than before.

    `label`, `unit` and `summary` are stored with the results, so an atlas opens without the plugin that made
    it. A declaration that breaks these rules raises an `ExtensionError`.
    """

    name: str
    label: str
    summary: str
    options: type[Options]
    measure: Callable[..., Any] | None = None
    decide: Callable[[Sequence[Any]], Mapping[str, Any]] | None = None
    remark: Callable[[Sequence[Any]], str] | None = None
    fit: Callable[..., Any] | None = None
    stages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    unit: str = "nats"
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if problem := method_name_problem(str(self.name)):
            raise ExtensionError(f"a method is named {self.name!r:.60}; {problem}.")
        owner = f"the method {self.name!r}"
        if (self.measure is None) == (self.fit is None):
            raise ExtensionError(f"{owner} needs either a function `measure` or a function `fit`.")
        require_options(owner, self.options, Options if self.measure is None else EffectOptions)
        if self.measure is not None:
            self._require_signature(self.measure)

    def _require_signature(self, measure: Callable[..., Any]) -> None:
        keywords = ["options", "seed", "progress"] + (["decided"] if self.decide is not None else [])
        try:
            signature(measure).bind(None, None, **dict.fromkeys(keywords))
        except (TypeError, ValueError) as error:
            raise ExtensionError(
                f"`measure` of the method {self.name!r} does not take (model, rows, *, "
                f"{', '.join(keywords)}): {error}."
            ) from None

    @property
    def about(self) -> dict[str, str]:
        """What an atlas keeps of the method."""
        return {"label": self.label, "unit": self.unit, "summary": self.summary}


METHODS = Registry(
    "method",
    Method,
    "headatlas.method",
    "headatlas.methods",
    first=METHOD_ORDER,
)
