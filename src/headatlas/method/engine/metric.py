"""What each row of a pass loses, by the metric that was chosen. Lower is better.

    nll          the mean negative log-likelihood of the row's target tokens
    logit_diff   minus (logit of the first target token − logit of the first foil token) at the position that
                 predicts it
    kl           KL(reference ‖ model) of the next-token distributions, mean over the target positions; the
                 reference is the ungated model on the same row (in mediation, on the clean prompt)
    a function   what it returns, a number per row

Effects are differences of these losses, so an effect above zero means that the head helps, by every metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from headatlas.core import NLL, Metric, RequestError, metric_name, require_metric
from headatlas.method.engine.likelihood import by_row, row_nll, token_nll
from headatlas.method.engine.rows import Pass
from headatlas.model import Model

__all__ = ["MetricBatch", "RowLoss"]


@dataclass(frozen=True, slots=True, eq=False)
class MetricBatch:
    """What a metric of your own knows beside the logits [target, vocabulary], which it gets as the model
    gives them (in its dtype) at the positions that predict target tokens.

    Targets stand row by row. It returns a tensor [row] of `size` losses, lower being better; gating and
    attribution need a gradient with respect to the logits. `foils` has as many columns as the longest foil
    of the task (none if no item has one) and −1 behind shorter foils.

        def margin(logits, batch):
            first = batch.places == 0          # each row has one first target
            chosen = logits[first].float()
            target = chosen.gather(1, batch.targets[first, None])[:, 0]
            return chosen.logsumexp(1) - target
    """

    #: how many rows there are
    size: int
    #: the row that each target is in
    rows: Int[Tensor, " target"]
    #: the place of each target among the targets of its row
    places: Int[Tensor, " target"]
    #: token ids
    targets: Int[Tensor, " target"]
    foils: Int[Tensor, "row foil"]


class RowLoss:
    """The losses of the rows of a pass by one metric."""

    def __init__(self, metric: Metric = NLL) -> None:
        self.metric = require_metric(metric)

    @property
    def is_nll(self) -> bool:
        return self.metric == NLL

    def reference(self, model: Model, batch: Pass) -> Float[Tensor, "target token"] | None:
        """What the metric compares with: the logits of the model as it is now, or None. Ask it before gates
        are set."""
        if self.metric != "kl":
            return None
        with torch.no_grad():
            return model.logits_at(batch.ids, batch.rows, batch.positions)

    def __call__(
        self,
        model: Model,
        batch: Pass,
        logits: Float[Tensor, "target token"] | None = None,
        *,
        reference: Float[Tensor, "target token"] | None = None,
        token_loss: Callable[[Tensor, Tensor], Tensor] = token_nll,
    ) -> Float[Tensor, " row"]:
        """The loss of each row; rows that only fill up a pass get zero."""
        if self.is_nll:
            return row_nll(model, batch, logits, token_loss)
        if logits is None:
            logits = model.logits_at(batch.ids, batch.rows, batch.positions)
        if callable(self.metric):
            return self._custom_loss(self.metric, batch, logits)
        if self.metric == "logit_diff":
            return _minus_logit_difference(batch, logits)
        each = _kl(logits.detach() if reference is None else reference, logits)
        each = each * batch.weights.to(logits.device)
        return by_row(each, batch).sum(1) / batch.counts.to(each.device)

    def trial(
        self, model: Model, batch: Pass, token_loss: Callable[[Tensor, Tensor], Tensor] = token_nll
    ) -> Float[Tensor, " row"]:
        """A loss that needs as much memory as the real one. Where a reference is needed, the logits of the
        pass stand for it."""
        return self(model, batch, token_loss=token_loss)

    def _custom_loss(
        self, function: Callable[[Tensor, MetricBatch], Tensor], batch: Pass, logits: Tensor
    ) -> Float[Tensor, " row"]:
        device, size = logits.device, len(batch.members)
        kept = batch.weights.to(device) == 1
        rows, places, targets = (part.to(device)[kept] for part in (batch.rows, batch.offsets, batch.targets))
        inputs = MetricBatch(size, rows, places, targets, batch.foils[:size].to(device))
        losses = function(logits[kept], inputs)
        name = metric_name(function)
        if not isinstance(losses, Tensor) or not losses.is_floating_point() or losses.shape != (size,):
            kind = (
                f"{losses.dtype} {list(losses.shape)}"
                if isinstance(losses, Tensor)
                else type(losses).__name__
            )
            raise RequestError(
                f"the metric {name!r} returned {kind}; return a float tensor of shape [{size}], "
                "a loss per row."
            )
        if logits.requires_grad and not losses.requires_grad:
            raise RequestError(
                f"the metric {name!r} has no gradient; compute it from the logits with torch operations that "
                "have one, or use an ablation."
            )
        spare = len(batch.ids) - size
        return functional.pad(losses.to(device).float(), (0, spare)) if spare else losses.to(device).float()


def _minus_logit_difference(batch: Pass, logits: Float[Tensor, "target token"]) -> Float[Tensor, " row"]:
    device = logits.device
    rows, targets = batch.rows.to(device), batch.targets.to(device)
    foils = batch.foils.to(device)[:, 0].index_select(0, rows).clamp(min=0)
    difference = logits.gather(1, targets[:, None]).float() - logits.gather(1, foils[:, None]).float()
    is_first = (batch.offsets.to(device) == 0) * batch.weights.to(device)
    return -by_row(difference[:, 0] * is_first, batch).sum(1)


def _kl(
    reference: Float[Tensor, "target token"], logits: Float[Tensor, "target token"]
) -> Float[Tensor, " target"]:
    """KL(reference ‖ model) at each position, in single precision."""
    known = functional.log_softmax(reference.float().to(logits.device), dim=-1)
    log_probabilities = functional.log_softmax(logits.float(), dim=-1)
    probabilities = known.exp()
    # A token that the model rules out (a logit of -inf) adds nothing.
    ratios = torch.where(probabilities > 0, known - log_probabilities, 0.0)
    return (probabilities * ratios).sum(-1)
