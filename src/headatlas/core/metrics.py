"""What a row of a task loses: the metrics that gates are fitted on and that effects are differences of.

Every metric gives a loss per row, and lower is better. `headatlas.method.engine.metric` computes them.

    nll          mean negative log-likelihood of the target tokens, in nats
    logit_diff   minus (logit of the first target token − logit of the first foil token) at the position that
                 predicts it; every item needs a foil
    kl           KL(ungated model ‖ gated model) of the next-token distributions, mean over the target
                 positions, in nats: zero means that the gates keep the model's behavior
    a function   `metric(logits, batch)` returns a loss per row; `MetricBatch` documents what it receives
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from headatlas.core.errors import RequestError, UnknownNameError

__all__ = [
    "METRICS",
    "NLL",
    "Metric",
    "MetricWords",
    "metric_from_json",
    "metric_name",
    "metric_to_json",
    "metric_words",
    "require_metric",
]

#: the name of a metric, or a function (logits, batch) -> [row]
Metric = str | Callable[[Any, Any], Any]

NLL = "nll"


@dataclass(frozen=True, slots=True)
class MetricWords:
    """How a metric is shown. Its `sign` times the mean loss is the figure that people know by `label`: a
    logit difference is better when it is higher, so it is minus the loss.

    `unit` is that of effects. A function has no unit; its name stands there. `gain` is what curves of
    validation show, minus the loss.
    """

    name: str
    label: str
    unit: str
    gain: str
    sign: int = 1
    needs_foil: bool = False


METRICS = {
    words.name: words
    for words in (
        MetricWords(NLL, "loss", "nats", "target log-probability"),
        MetricWords("logit_diff", "logit difference", "logits", "logit difference", -1, needs_foil=True),
        MetricWords("kl", "KL divergence", "nats of KL divergence", "minus the KL divergence"),
    )
}


def require_metric(metric: Any) -> Metric:
    """The metric if it is one, else an error that names the allowed values."""
    if isinstance(metric, Mapping) and "name" in metric:
        raise RequestError(
            f"the metric {metric['name']!r} is a Python function, which an atlas does not store; give it "
            f"again: metric={metric['name']}, from {metric.get('module', 'its module')}."
        )
    if isinstance(metric, str):
        if metric not in METRICS:
            raise UnknownNameError(
                "metric", metric, METRICS, "(or give a function (logits, batch) -> [row].)"
            )
        return metric
    if not callable(metric):
        raise RequestError(
            f"metric is {metric!r:.60}; give {', '.join(METRICS)} or a function (logits, batch) -> [row]."
        )
    function: Callable[[Any, Any], Any] = metric
    return function


def metric_words(metric: Metric | Mapping[str, Any]) -> MetricWords:
    """How a metric is shown; also one as `metric_to_json` wrote it."""
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    name = metric_name(metric)
    return MetricWords(name, name, name, f"minus {name}")


def metric_name(metric: Metric | Mapping[str, Any]) -> str:
    """The name of a metric: that of a function is its `__name__`."""
    if isinstance(metric, str):
        return metric
    if isinstance(metric, Mapping):
        return str(metric.get("name", "metric"))
    return str(getattr(metric, "__name__", type(metric).__name__))


def metric_to_json(metric: Metric | Mapping[str, Any]) -> Any:
    """The metric as plain data: a function is its name, its module and a hash of its source if Python knows
    the source. Two functions of one name and another source are different metrics."""
    if isinstance(metric, str | Mapping):
        return metric
    function = metric if hasattr(metric, "__name__") else type(metric)
    data = {"name": metric_name(metric), "module": str(getattr(function, "__module__", ""))}
    try:
        return {**data, "source": sha256(inspect.getsource(function).encode()).hexdigest()}
    except (OSError, TypeError):
        return data


def metric_from_json(stored: Any, again: Metric | None = None) -> Metric:
    """A stored metric. A function cannot be stored: it is `again` if that is the same function, and an error
    asks for it otherwise."""
    if isinstance(stored, Mapping) and callable(again) and metric_to_json(again) == dict(stored):
        return again
    return require_metric(stored)
