"""The gradient of a batch, in as many passes as memory asks for.

Passes may run as compiled blocks and as recorded CUDA graphs. How they are cut, and whether blocks are
compiled, decides about the rounding of results, so a fit that goes on keeps both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headatlas.core import FitError
from headatlas.method.engine.block_compiler import BlockCompiler, is_compiler_error
from headatlas.method.engine.determinism import allow_any_order, fit_conditions
from headatlas.method.engine.memory import (
    NO_ROOM,
    blocks_of,
    checkpointed,
    is_out_of_memory,
    token_budget,
)
from headatlas.method.engine.metric import RowLoss
from headatlas.method.engine.objective import Batch, Objective
from headatlas.method.engine.recorder import Recorder
from headatlas.method.engine.rows import Pass, on
from headatlas.model import Model

__all__ = ["PassRunner", "passes_per_update"]

#: operations that keep a GPU busy for a while, and into how many passes an update is cut at most
_BUSY, _PIECES = 8e12, 4
_Result = TypeVar("_Result")


def passes_per_update(operations: float) -> int:
    """In several passes there is less padding, but each is to keep a GPU busy. Operations of an update:
    forward, and backward through the activations."""
    return int(np.clip(operations / _BUSY, 1, _PIECES))


class PassRunner:
    """Runs the passes of an objective. `budget` is the number of tokens in a pass; None measures it."""

    def __init__(self, model: Model, objective: Objective, *, name: str, budget: int | None = None) -> None:
        self.model, self.objective, self.name, self.budget = model, objective, name, budget
        self.checkpointing = False
        #: True if the model has an operation that adds up in no fixed order on this device
        self.any_order = False
        mean_length = float(objective.rows.lengths.mean())
        tokens = mean_length * len(objective.sets) * objective.batch * objective.width
        layers, width = model.spec.layers, model.spec.hidden
        self.compiler = BlockCompiler(model, tokens * layers * width * objective.schedule.updates)
        self.row_loss = RowLoss(objective.settings.metric)
        if not self.row_loss.is_nll:
            self.compiler.give_up()
        self.recorder = self._recorder()
        operations = 4.0 * (model.spec.parameters or 0) * tokens
        #: passes of an update, filled up to round shapes; 0: cut by the budget alone
        self.pieces = passes_per_update(operations) if model.device.type == "cuda" else 0

    def _recorder(self) -> Recorder:
        """Only passes with the default metric are recorded: a function may wait for results of the GPU."""
        recorder = Recorder(self.model)
        recorder.on &= self.row_loss.is_nll
        return recorder

    @contextmanager
    def ready(self) -> Iterator[None]:
        """The conditions of a fit, with a budget. Only within them is there a gradient."""
        rows, model = self.objective.rows, self.model
        with fit_conditions(model, int(rows.lengths.max())):
            model.try_readout(torch.from_numpy(rows.ids[:4, :8]).long().to(model.device))
            if self.budget is None or self.compiler:  # code is always made for the same shape first
                measured = self._compiling(
                    lambda: token_budget(
                        model,
                        rows,
                        partial(self.row_loss.trial, model, token_loss=self.compiler.token_loss),
                        self._gated,
                    )
                )
                self.budget = self.budget or measured
            yield

    def gradient(
        self, batch: Batch, parameters: Float[Tensor, "set layer head"]
    ) -> tuple[Float[Tensor, "set layer head"], Float[Tensor, " set"], int]:
        """(the gradient of every set's own loss, these losses, tokens)."""
        while True:
            assert self.budget is not None
            try:
                sums = self._compiling(partial(self._accumulate, batch, parameters, self.budget))
            except RuntimeError as error:
                if allow_any_order(error):  # this model has an operation that only adds in any order
                    continue
                if not is_out_of_memory(error):
                    raise
            else:
                self.any_order = torch.is_deterministic_algorithms_warn_only_enabled()
                return sums
            self._save_memory()  # here, where the error no longer holds on to the tensors

    def _compiling(self, work: Callable[[], _Result]) -> _Result:
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
        self.recorder = self._recorder()  # what recordings hold goes first
        if self.budget > self.objective.rows.lengths.max():
            self.budget //= 2
        elif not self.checkpointing and blocks_of(self.model):
            self.checkpointing = True
        else:
            raise FitError(f"{self.name}: {NO_ROOM}")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _accumulate(self, batch: Batch, parameters: Tensor, budget: int) -> tuple[Tensor, Tensor, int]:
        device = parameters.device
        gradient, losses = torch.zeros_like(parameters), torch.zeros(len(parameters), device=device)
        tokens = 0
        for group in self.objective.rows.passes(batch.rows, budget, self.model.device, pieces=self.pieces):
            owners = np.full(group.shape[0], -1)  # rows that only fill up belong to nobody
            owners[: len(group.members)] = group.members // (self.objective.batch * batch.rows.shape[1])
            extras = [on(_for_pass(extra, group), device) for extra in batch.extras]
            owned_by = on(torch.from_numpy(owners), device)
            loss, slope = self.recorder(self._pass, group, owned_by, parameters, *extras)
            gradient += slope
            losses += loss
            tokens += group.tokens
        return gradient, losses, tokens

    def _pass(
        self,
        group: Pass,
        owners: Int[Tensor, " row"],
        parameters: Float[Tensor, "set layer head"],
        *extras: Tensor,
    ) -> tuple[Float[Tensor, " set"], Float[Tensor, "set layer head"]]:
        """What the rows of a pass add to the loss of each set, and its gradient."""
        # A product with zeros and ones hands out gates and collects gradients in a fixed order of
        # addition; indexing would add them up in any order on a GPU.
        # In double precision, which no setting of the caller's (TF32, autocast) makes coarser.
        kind = torch.float32 if parameters.device.type == "mps" else torch.float64
        owned = (owners[:, None] == torch.arange(len(parameters), device=parameters.device)).to(kind)
        width = self.objective.width
        leaf = parameters.detach().clone().requires_grad_()
        gates = self.objective.row_gates(leaf, owned, extras)
        reference = self.row_loss.reference(self.model, group)
        with self._gated(gates):
            rows_lost = self.row_loss(
                self.model, group, reference=reference, token_loss=self.compiler.token_loss
            ).to(leaf.device)
            loss = self.objective.loss(rows_lost.unflatten(0, (-1, width))) / self.objective.batch
            owned_units = owned[::width]
            torch.autograd.backward((loss * owned_units.sum(1).to(loss.dtype)).sum())
        if leaf.grad is None:
            raise FitError(
                f"{self.name}: no gradient reaches the gates; weights of this kind have no backward pass "
                "here (4-bit ones on a CPU have none): load the model in another way."
            )
        return (loss.detach().to(kind) @ owned_units).float(), leaf.grad

    def facts(self) -> dict[str, Any]:
        """What decides about rounding."""
        return {
            "budget": self.budget,
            "checkpointing": self.checkpointing,
            "compiled": bool(self.compiler),
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        self.budget, self.checkpointing = facts["budget"], bool(facts["checkpointing"])
        if not facts.get("compiled", True):
            self.compiler.give_up()


def _for_pass(extra: Tensor, group: Pass) -> Tensor:
    """The entries of the rows of a pass; rows that only fill up have that of the last row, so that it is a
    valid one."""
    spare = group.shape[0] - len(group.members)
    return extra[torch.from_numpy(np.pad(group.members, (0, spare), "edge"))]
