"""The outcome of an export: what it did to the task, as values and as the card of the checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headatlas._version import __version__
from headatlas.atlas import Atlas, Interval
from headatlas.core import without_local_paths

__all__ = ["Exported", "checkpoint_card"]

#: nats; a smaller change of the NLL is rounding
_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of a model. `before` and `after` are on held-out items. `change` and `accuracy_change` are
    the mean differences of their NLL and accuracy (after less before, item by item) with 95 % intervals;
    `deviation` is how far the logits of the checkpoint, loaded by transformers alone, are from those of the
    gated model, against their size."""

    path: Path
    task: str
    gates: str
    hard: float | None
    seed: int | None
    threshold: float | None
    off: list[str]
    scaled: int
    before: dict[str, float]
    after: dict[str, float]
    change: Interval
    accuracy_change: Interval
    items: int
    deviation: float
    parameters: tuple[int, int]
    pruned: str | None
    speed: float | None
    heads: int

    @property
    def faithful(self) -> str:
        """How near the checkpoint is to the gated model, in words."""
        if not self.deviation:
            return "its logits are those of the gated model, bit for bit"
        return f"its logits differ from the gated model's by at most {self.deviation:.1g} of their size"

    @property
    def harms(self) -> bool:
        """True if the interval of the NLL change lies above zero, or that of the accuracy change below it. A
        change without an interval counts as certain."""
        rise, fall = self.change, self.accuracy_change
        least_rise = rise.mean if rise.low is None else rise.low
        least_fall = fall.mean if fall.high is None else fall.high
        return not least_rise <= _ROUNDING or least_fall < 0  # a NaN NLL harms

    @property
    def effect(self) -> str:
        """What the gates do to the task, with the figures."""
        improves = (self.change.high or 0) < -_ROUNDING or (self.accuracy_change.low or 0) > 0
        verdict = "worse" if self.harms else "better" if improves else "no clear change"
        return (
            f"NLL {self.before['nll']:.3f} → {self.after['nll']:.3f} nats per token "
            f"({_with_interval(self.change)}), accuracy {self.before['accuracy']:.3f} → "
            f"{self.after['accuracy']:.3f} ({_with_interval(self.accuracy_change)}): {verdict}"
        )

    def to_json(self) -> dict[str, Any]:
        data = {**asdict(self), "path": str(self.path), "harms": self.harms}
        del data["heads"]  # in the values of `headatlas.json`
        return data

    def lines(self) -> list[str]:
        """What a user is told."""
        head = (f"{self.task}, {self.items} held-out items", "before", "after")
        figures = [("NLL, nats per token", "nll"), ("accuracy", "accuracy")]
        rows = [(name, f"{self.before[key]:.3f}", f"{self.after[key]:.3f}") for name, key in figures]
        if self.parameters[0] != self.parameters[1]:
            rows.append(("parameters", f"{self.parameters[0]:,}", f"{self.parameters[1]:,}"))
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
        lines = [
            f"{name:<{widths[0]}} {before:>{widths[1]}} {after:>{widths[2]}}"
            for name, before, after in (head, *rows)
        ]
        more = f" and {len(self.off) - 12} more" if len(self.off) > 12 else ""
        off = ", ".join(self.off[:12]) + more
        lines.append(f"off: {len(self.off)} of {self.heads} heads{': ' + off if off else ''}")
        if self.scaled:
            lines.append(f"scaled: {self.scaled} others, by gates between 0 and 1")
        if self.pruned:
            speed = f"; a forward pass is {self.speed:.2f} times as quick" if self.speed else ""
            lines.append(self.pruned + speed)
        lines.append(f"{self.path}: an ordinary checkpoint that reproduces the gated model: {self.faithful}")
        lines.append(f"task {self.task}: {self.effect}")
        if self.harms:
            lines.append("warning: the checkpoint harms its task; written because of force=True")
        return lines


def _with_interval(change: Interval) -> str:
    none = ", no 95 % interval: all items change alike, or share one prompt or group"
    interval = change.brackets("+.3f") or none
    return f"{change.mean:+.3f}{interval}"


def checkpoint_card(atlas: Atlas, made: Exported) -> str:
    """The checkpoint in words."""
    model = without_local_paths(atlas.spec.name)  # cards are published
    which = {
        "always": "heads that interfere with the task in every seed (with a score of "
        f"{made.threshold or 0:g} or more) are switched off",
        "retain": "gates of the fit that keeps what it can (G+)",
        "remove": "gates of the fit that keeps only what it must (G-)",
    }[made.gates]
    if made.gates != "always":
        which += ", the mean over the seeds" if made.seed is None else f", seed {made.seed}"
    if made.hard is not None:
        which += f", off below {made.hard:g} and on from there"
    lines = [
        "---",
        "library_name: transformers",
        *([f"base_model: {model}"] if "/" in model else []),
        "tags: [headatlas, attention-head-gating]",
        "---",
        "",
        f"# {model} with attention heads gated for {made.task}",
        "",
        f"{model} with the outputs of attention heads multiplied by gates that were found by "
        f"causal head gating on the task *{made.task}*: {which}. The gates are part of the output "
        "projections; it is an ordinary checkpoint that transformers loads as it is. The licence is that of "
        "the original model.",
        "",
        f"On {made.items} items of {made.task} that no fit has seen:",
        "",
        "| | before | after |",
        "| --- | --- | --- |",
        f"| negative log-likelihood per target token, nats | {made.before['nll']:.3f} | "
        f"{made.after['nll']:.3f} |",
        f"| items with every target token right | {made.before['accuracy']:.3f} | "
        f"{made.after['accuracy']:.3f} |",
        f"| target tokens right | {made.before['token_accuracy']:.3f} | {made.after['token_accuracy']:.3f} |",
        "",
        f"Changes paired by item: NLL in nats {_with_interval(made.change)}; accuracy on whole targets "
        f"{_with_interval(made.accuracy_change)}.",
        "",
        *(
            ["**This checkpoint harms its task. It was written with `force=True`.**", ""]
            if made.harms
            else []
        ),
        "Nothing is said about other tasks: measure those that matter to you before you use it.",
        "",
        f"Off ({len(made.off)} of {len(atlas.spec)} heads): {', '.join(made.off) or 'none'}."
        + (f" {made.scaled} others are scaled down." if made.scaled else ""),
    ]
    if made.pruned:
        speed = (
            f"; a forward pass of two short texts is {made.speed:.2f} times as quick" if made.speed else ""
        )
        lines += [
            "",
            f"Pruning: {made.pruned}; {made.parameters[0]:,} parameters before, {made.parameters[1]:,} "
            f"after{speed}.",
        ]
    lines += [
        "",
        f"Made by headatlas {__version__}. Loaded by transformers alone, {made.faithful}. `headatlas.json` "
        "has the gates.",
        "",
    ]
    return "\n".join(lines)
