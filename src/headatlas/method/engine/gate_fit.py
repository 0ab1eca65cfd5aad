"""Causal head gating: gates learned on all heads, for many seeds and both pressures side by side.

A gate set is one logit per head; its gate is the sigmoid of that. Sets that are fitted side by side share
forward passes and nothing else: every row of a pass carries the gates of the set that it was drawn for,
each set has its own loss, its own gradient norm and its own place in Adam (which works number by number).

    free     no pressure, from a random start
    retain   from the free result, gates pushed towards 1: a gate that stays low marks a head that hurts
    remove   from the free result, gates pushed towards 0: a gate that stays high marks a head that is needed
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from headatlas.core import FitError
from headatlas.method.engine.likelihood import NO_ROOM, is_out_of_memory, row_nll
from headatlas.method.engine.recorder import Recorder
from headatlas.method.engine.resources import (
    BlockCompiler,
    allow_any_order,
    can_checkpoint,
    checkpointed,
    fit_conditions,
    is_compiler_error,
    token_budget,
)
from headatlas.method.engine.rows import Pass, RowTable, draw, on
from headatlas.method.gating import GatingSettings, Stage
from headatlas.model import Model

__all__ = ["STAGES", "FitResult", "GateFit", "Step", "random_starts"]

#: the two stages of a fit, and what is fitted in each
STAGES = {"free": ("free",), "pressed": ("retain", "remove")}
#: which way the pressure goes
_SIGN = {"free": 0.0, "retain": 1.0, "remove": -1.0}
_Found = TypeVar("_Found")
#: at most so many snapshots of the gates are kept, for a plot
SNAPSHOTS = 40
#: operations that keep a GPU busy for a while, and into how many passes an update is cut at most
_BUSY, _PIECES = 8e12, 4
#: seconds between two looks at the loss on a GPU
_LOOK = 0.25


@dataclass(frozen=True, slots=True)
class FitResult:
    """A finished fit: the logits [layer, head] (NaN where there is no head), and how they came about."""

    seed: int
    fit: str
    logits: np.ndarray
    path: np.ndarray
    path_updates: np.ndarray
    losses: np.ndarray


@dataclass(frozen=True, slots=True)
class Step:
    """What a progress bar wants to know after an update (or after one of several measurements)."""

    stage: str
    update: int
    updates: int
    loss: float | None
    tokens: int


def random_starts(model: Model, settings: GatingSettings, seeds: Sequence[int]) -> Tensor:
    """[seed, layer, head]: logits of gates drawn evenly from the range of the settings, kept finite."""
    drawn = [
        np.random.default_rng([seed, 1_000_003]).uniform(*settings.start, size=model.spec.shape)
        for seed in seeds
    ]
    return torch.logit(torch.from_numpy(np.stack(drawn))).clamp(-settings.limit, settings.limit).float()


class GateFit:
    """One stage of some gate sets side by side. What it is at any moment can be saved and restored.

    `sets` names each gate set by (seed, fit); `starts` [set, layer, head] are the logits to begin with.
    Rows that a set sees, and their order, depend on its seed and the stage alone.
    """

    def __init__(
        self,
        model: Model,
        rows: RowTable,
        settings: GatingSettings,
        stage: str,
        sets: Sequence[tuple[int, str]],
        starts: Tensor,
        *,
        name: str = "task",
        budget: int | None = None,
    ) -> None:
        targets = float((rows.lengths - rows.starts).mean())
        self.model, self.rows, self.settings, self.name = model, rows, settings.for_targets(targets), name
        assert self.settings.batch is not None
        self._batch = self.settings.batch
        self.stage, self.sets = stage, list(sets)
        self._there = torch.zeros(model.spec.shape)
        for head in model.spec:
            self._there[head.layer, head.head] = 1
        self._there = self._there.to(model.device)
        self.budget = budget
        self.checkpointing = False
        self.any_order = False
        layers, width = model.spec.layers, model.spec.hidden
        self.compiler = BlockCompiler(model, self._tokens() * layers * width * self.schedule.updates)
        self._recorder = Recorder(model)
        self.pieces = self._pieces() if model.device.type == "cuda" else 0
        self.update = 0
        self.logits = torch.nan_to_num(starts.float()).to(model.device).clone()
        if settings.objective == "bounded":
            self.logits.clamp_(-settings.limit, settings.limit)
        self._mean, self._square = torch.zeros_like(self.logits), torch.zeros_like(self.logits)
        self._path: list[Tensor] = [torch.sigmoid(self.logits).cpu()]
        self._losses: list[Tensor] = []
        #: [set]: the update at which its loss or slope was no number, 0 if all were
        self._bad_at = torch.zeros(len(self.sets), dtype=torch.long, device=model.device)
        self._looked = -np.inf, 0.0

    def _pressures_now(self) -> Tensor:
        """[set, 1, 1]: pulls logits up where it is positive."""
        left = 1 - self.update / max(1, self.schedule.updates - 1)
        pushes = {"remove": 1 + (self.settings.push - 1) * left}
        pressures = [_SIGN[fit] * self.settings.pressure * pushes.get(fit, 1.0) for _, fit in self.sets]
        return torch.tensor(pressures, device=self.model.device).view(-1, 1, 1)

    @property
    def schedule(self) -> Stage:
        return self.settings.free if self.stage == "free" else self.settings.pressed

    def _tokens(self) -> float:
        """Of an update."""
        return float(self.rows.lengths.mean()) * len(self.sets) * self._batch * self._drawn_width

    def _pieces(self) -> int:
        """Passes of an update: in several there is less padding, but each is to keep a GPU busy. Counted in
        operations: forward, and backward through the activations."""
        return int(np.clip(4.0 * (self.model.spec.parameters or 0) * self._tokens() / _BUSY, 1, _PIECES))

    @property
    def done(self) -> bool:
        return self.update >= self.schedule.updates

    def run(self, after: Callable[[Step], None] | None = None) -> None:
        """Go on to the end of the stage; `after` is called after each update."""
        with fit_conditions(self.model, int(self.rows.lengths.max())):
            self.model.try_readout(torch.from_numpy(self.rows.ids[:4, :8]).long().to(self.model.device))
            if self.budget is None or self.compiler:  # code is always made for the same shape first
                found = self._compiling(
                    lambda: token_budget(self.model, self.rows, self._gated, self.compiler.each_nll)
                )
                self.budget = self.budget or found
            while not self.done:
                tokens = self._step()
                self.any_order = torch.is_deterministic_algorithms_warn_only_enabled()
                if after is not None:
                    after(Step(self.stage, self.update, self.schedule.updates, self._loss_by_now(), tokens))
            self._require_finite()

    def _loss_by_now(self) -> float:
        """The mean loss of the last update, or on a GPU of one a moment ago: asking makes the host wait, and
        the GPU wait for it afterwards."""
        if self.logits.device.type != "cuda" or time.monotonic() - self._looked[0] > _LOOK or self.done:
            self._require_finite()
            self._looked = time.monotonic(), float(self._losses[-1].mean())
        return self._looked[1]

    def _step(self) -> int:
        settings = self.settings
        gradient, losses, tokens = self._task_gradient()
        inside = self.logits.abs() <= settings.limit  # the bound itself included: pressure can lead back
        gradient = (gradient - self._pressures_now() * inside / self._there.sum()) * self._there
        norm = gradient.flatten(1).norm(dim=1)
        bad = ~torch.isfinite(losses + norm) & (self._bad_at == 0)
        self._bad_at = torch.where(bad, self.update + 1, self._bad_at)
        gradient = gradient * (settings.clip / (norm + 1e-6)).clamp(max=1).view(-1, 1, 1)
        self._adam(gradient)
        if settings.objective == "bounded":
            self.logits.clamp_(-settings.limit, settings.limit)
        self._losses.append(losses)
        self.update += 1
        if self.update in self._snapshot_updates():
            self._path.append(torch.sigmoid(self.logits).cpu())
        return tokens

    def _adam(self, gradient: Tensor) -> None:
        first, second = self.settings.momentum
        self._mean.lerp_(gradient, 1 - first)
        self._square.lerp_(gradient.square(), 1 - second)
        number = self.update + 1
        mean = self._mean / (1 - first**number)
        size = (self._square / (1 - second**number)).sqrt() + 1e-8
        self.logits -= self.schedule.rate_at(self.update) * mean / size

    # The gradient of every set's own loss, in as many passes as memory asks for.

    def _task_gradient(self) -> tuple[Tensor, Tensor, int]:
        while True:
            assert self.budget is not None
            try:
                return self._compiling(lambda: self._accumulate(self.budget))
            except RuntimeError as error:
                if allow_any_order(error):  # this model has an operation that only adds in any order
                    continue
                if not is_out_of_memory(error):
                    raise
            self._save_memory()  # here, where the error no longer holds on to the tensors

    def _compiling(self, work: Callable[[], _Found]) -> _Found:
        """With compiled blocks if that is possible here, else without."""
        try:
            with self.compiler(), checkpointed(self.model, self.checkpointing):
                return work()
        except Exception as error:
            if not self.compiler or not is_compiler_error(error):
                raise
        self.compiler.give_up()
        return self._compiling(work)

    def _gated(self, gates: Tensor) -> AbstractContextManager[None]:
        return self.model.fixed_gates(gates) if self.compiler else self.model.gates(gates)

    def _save_memory(self) -> None:
        """Smaller passes; when a pass is one row already, layers that run again instead of being kept."""
        assert self.budget is not None
        self._recorder = Recorder(self.model)  # what recordings hold goes first
        if self.budget > self.rows.lengths.max():
            self.budget //= 2
        elif not self.checkpointing and can_checkpoint(self.model):
            self.checkpointing = True
        else:
            raise FitError(f"{self.name}: {NO_ROOM}")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _drawn(self) -> np.ndarray:
        """[set * batch, 1]: the rows of this update, set after set."""
        stage = list(STAGES).index(self.stage)
        return np.concatenate(
            [draw(len(self.rows), self._batch, self.update, seed, stage) for seed, _ in self.sets]
        )[:, None]

    #: rows that belong together
    _drawn_width = 1

    def _loss(self, nll: Tensor) -> Tensor:
        """[unit]: from the mean negative log-likelihoods [unit, width] of the rows of each unit."""
        return nll[:, 0]

    def _accumulate(self, budget: int | None) -> tuple[Tensor, Tensor, int]:
        assert budget is not None
        chosen = self._drawn()
        gradient, losses = (
            torch.zeros_like(self.logits),
            torch.zeros(len(self.sets), device=self.logits.device),
        )
        tokens = 0
        for group in self.rows.passes(chosen, budget, self.model.device, pieces=self.pieces):
            owners = np.full(group.shape[0], -1)  # rows that only fill up belong to nobody
            owners[: len(group.members)] = group.members // (self._batch * chosen.shape[1])
            device = self.logits.device
            loss, slope = self._recorder(self._pass, group, on(torch.from_numpy(owners), device), self.logits)
            gradient += slope
            losses += loss
            tokens += group.tokens
        return gradient, losses, tokens

    def _pass(self, group: Pass, owners: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """([set], [set, layer, head]): what the rows of a pass add to the loss of each set, and its slope."""
        # A product with zeros and ones hands out gates and collects gradients in a fixed order of
        # addition; indexing would add them up in any order on a GPU.
        # In double precision, which no setting of the caller's (TF32, autocast) makes coarser.
        kind = torch.float32 if logits.device.type == "mps" else torch.float64
        owned = (owners[:, None] == torch.arange(len(logits), device=logits.device)).to(kind)
        width = self._drawn_width
        leaf = logits.detach().clone().requires_grad_()
        gates = (owned @ torch.sigmoid(leaf).flatten(1).to(kind)).unflatten(1, self._there.shape).float()
        with self._gated(gates):
            nll = row_nll(self.model, group, each_nll=self.compiler.each_nll).to(leaf.device)
            loss = self._loss(nll.unflatten(0, (-1, width))) / self._batch
            mine = owned[::width]
            torch.autograd.backward((loss * mine.sum(1).to(loss.dtype)).sum())
        if leaf.grad is None:
            raise FitError(
                f"{self.name}: no gradient reaches the gates; weights of this kind have no backward pass "
                "here (4-bit ones on a CPU have none): load the model in another way."
            )
        return (loss.detach().to(kind) @ mine).float(), leaf.grad

    def _require_finite(self) -> None:
        """The set that was first to have no number is named: in the next pass all have none."""
        known = [(at, name) for at, name in zip(self._bad_at.tolist(), self.sets, strict=True) if at]
        if known:
            update, (seed, fit) = min(known, key=lambda one: one[0])
            raise FitError(
                f"{self.name}, seed {seed}, fit {fit}: the loss or its gradient is no number at update "
                f"{update} of {self.schedule.updates}; the model is in {self.model.spec.dtype}: "
                "try --dtype float32 and another --out. Finished fits are kept."
            )

    def _snapshot_updates(self) -> list[int]:
        updates = self.schedule.updates
        step = -(-updates // SNAPSHOTS)
        return sorted({*range(0, updates + 1, step), updates})

    def results(self) -> list[FitResult]:
        """The gate sets, when the stage is done."""
        assert self.done
        holes = self._there.cpu() == 0
        final = self.logits.cpu().masked_fill(holes, torch.nan)
        path = torch.stack(self._path).masked_fill(holes, torch.nan)
        losses = torch.stack(self._losses).cpu()
        places = np.array(self._snapshot_updates(), dtype=np.int32)
        return [
            FitResult(seed, fit, final[n].numpy(), path[:, n].numpy(), places, losses[:, n].numpy())
            for n, (seed, fit) in enumerate(self.sets)
        ]

    # Saving and restoring

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers of the moment; with `facts` they are the whole fit."""
        self._require_finite()
        shape = (0, *self.logits.shape)
        return {
            "logits": self.logits.cpu().numpy(),
            "mean": self._mean.cpu().numpy(),
            "square": self._square.cpu().numpy(),
            "path": torch.stack(self._path).numpy() if self._path else np.zeros(shape, np.float32),
            "losses": torch.stack(self._losses).cpu().numpy()
            if self._losses
            else np.zeros((0, len(self.sets)), np.float32),
        }

    def facts(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "sets": self.sets,
            "update": self.update,
            "budget": self.budget,
            "checkpointing": self.checkpointing,
            "compiled": bool(self.compiler),
        }

    def restore(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Become the fit that was saved; it must have been made with the same settings."""
        self.sets = [(int(seed), str(fit)) for seed, fit in facts["sets"]]
        self.update, self.budget = int(facts["update"]), facts["budget"]
        self.checkpointing = bool(facts["checkpointing"])
        if not facts.get("compiled", True):
            self.compiler.give_up()
        device = self.model.device
        self.logits = torch.from_numpy(arrays["logits"].copy()).to(device)
        self._mean = torch.from_numpy(arrays["mean"].copy()).to(device)
        self._square = torch.from_numpy(arrays["square"].copy()).to(device)
        self._path = list(torch.from_numpy(arrays["path"].copy()))
        self._losses = list(torch.from_numpy(arrays["losses"].copy()).to(device))
