"""Causal head gating: gates learned on all heads, for many seeds and both pressures side by side.

A gate set is one logit per head; its gate is the sigmoid of that. Sets that are fitted side by side share
forward passes and nothing else: every row of a pass carries the gates of the set that it was drawn for,
each set has its own loss, its own gradient norm and its own place in Adam (which works number by number).

    free     no pressure, from a random start
    retain   from the free result, gates pushed towards 1: a gate that stays low marks a head that hurts
    remove   from the free result, gates pushed towards 0: a gate that stays high marks a head that is needed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headatlas.core import FitError
from headatlas.method.engine.history import History
from headatlas.method.engine.objective import Objective, heads_present
from headatlas.method.engine.optimizer import Adam, clipped
from headatlas.method.engine.pass_runner import PassRunner
from headatlas.method.gating import GatingSettings
from headatlas.model import Model

__all__ = ["FitResult", "GateFit", "Step", "random_starts"]


@dataclass(frozen=True, slots=True)
class FitResult:
    """A finished fit: the logits (NaN where there is no head), and how they came about."""

    seed: int
    fit: str
    logits: Float[np.ndarray, "layer head"]
    path: Float[np.ndarray, "snapshot layer head"]
    path_updates: Int[np.ndarray, " snapshot"]
    losses: Float[np.ndarray, " update"]


@dataclass(frozen=True, slots=True)
class Step:
    """What a progress bar wants to know after an update (or after one of several measurements)."""

    stage: str
    update: int
    updates: int
    loss: float | None
    tokens: int


def random_starts(
    model: Model, settings: GatingSettings, seeds: Sequence[int]
) -> Float[Tensor, "seed layer head"]:
    """Logits of gates drawn evenly from the range of the settings, kept finite."""
    drawn = [
        np.random.default_rng([seed, 1_000_003]).uniform(*settings.start, size=model.spec.shape)
        for seed in seeds
    ]
    return torch.logit(torch.from_numpy(np.stack(drawn))).clamp(-settings.limit, settings.limit).float()


class GateFit:
    """One stage of some gate sets side by side. What it is at any moment can be saved and restored.

    `objective` says what is fitted, `starts` are the logits to begin with, `budget` is the number of tokens
    in a pass (None: measured).
    """

    def __init__(
        self,
        model: Model,
        objective: Objective,
        starts: Float[Tensor, "set layer head"],
        *,
        name: str = "task",
        budget: int | None = None,
    ) -> None:
        self.model, self.objective, self.name = model, objective, name
        self.sets, self.stage, self.schedule = objective.sets, objective.stage, objective.schedule
        self.runner = PassRunner(model, objective, name=name, budget=budget)
        self.update = 0
        self.logits = torch.nan_to_num(starts.float()).to(model.device).clone()
        objective.project(self.logits)
        self._present = heads_present(model)
        self.adam = Adam(self.logits, objective.settings.momentum)
        self.history = History(self.schedule.updates, self.logits)

    @property
    def done(self) -> bool:
        return self.update >= self.schedule.updates

    def run(self, after: Callable[[Step], None] | None = None) -> None:
        """Go on to the end of the stage; `after` is called after each update."""
        with self.runner.ready():
            while not self.done:
                tokens = self.step()
                if after is not None:
                    after(Step(self.stage, self.update, self.schedule.updates, self._loss_by_now(), tokens))
            self._require_finite()

    def step(self) -> int:
        """One update, inside `runner.ready()`; how many tokens it took."""
        update, objective = self.update, self.objective
        gradient, losses, tokens = self.runner.gradient(objective.draw(update), self.logits)
        gradient = objective.add_pressure(gradient, self.logits, update) * self._present
        norm = gradient.flatten(1).norm(dim=1)
        self.update += 1
        self.history.check(losses + norm, self.update)
        gradient = clipped(gradient, norm, objective.settings.clip)
        self.adam.step(self.logits, gradient, self.schedule.rate_at(update), self.update)
        objective.project(self.logits)
        self.history.append(losses, self.logits, self.update)
        return tokens

    def _loss_by_now(self) -> float:
        """The mean loss of the last update, or on a GPU of one a moment ago."""
        if self.history.should_look() or self.done:
            self._require_finite()
            self.history.look()
        return self.history.seen_loss

    def _require_finite(self) -> None:
        if (bad := self.history.first_bad()) is not None:
            update, (seed, fit) = bad[0], self.sets[bad[1]]
            raise FitError(
                f"{self.name}, seed {seed}, fit {fit}: the loss or its gradient is no number at update "
                f"{update} of {self.schedule.updates}; the model is in {self.model.spec.dtype}: "
                "try dtype='float32' and another out=…. Finished fits are kept."
            )

    def results(self) -> list[FitResult]:
        """The gate sets, when the stage is done."""
        assert self.done
        holes = self._present.cpu() == 0
        final = self.logits.cpu().masked_fill(holes, torch.nan)
        path = torch.stack(self.history.path).masked_fill(holes, torch.nan)
        losses = torch.stack(self.history.losses).cpu()
        places = np.array(self.history.snapshot_updates, dtype=np.int32)
        return [
            FitResult(seed, fit, final[n].numpy(), path[:, n].numpy(), places, losses[:, n].numpy())
            for n, (seed, fit) in enumerate(self.sets)
        ]

    # Saving and restoring

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers of the moment; with `facts` they are the whole fit."""
        self._require_finite()
        return {
            "logits": self.logits.cpu().numpy(),
            "mean": self.adam.mean.cpu().numpy(),
            "square": self.adam.square.cpu().numpy(),
            **self.history.arrays(),
        }

    def facts(self) -> dict[str, Any]:
        return {"stage": self.stage, "sets": self.sets, "update": self.update, **self.runner.facts()}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Become the fit that was saved; it must have been made of the same sets with the same settings."""
        assert [(int(seed), str(fit)) for seed, fit in facts["sets"]] == self.sets
        self.update = int(facts["update"])
        self.runner.restore(facts)
        logits, mean, square = (
            torch.from_numpy(arrays[name].copy()).to(self.model.device)
            for name in ("logits", "mean", "square")
        )
        self.logits, self.adam.mean, self.adam.square = logits, mean, square
        self.history.restore(arrays)
