"""What a fit remembers of its updates: losses, snapshots of gates, and where numbers broke."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["SNAPSHOTS", "History"]

#: at most so many snapshots of the gates are kept, for a plot
SNAPSHOTS = 40
#: seconds between two looks at the loss on a GPU
_LOOK = 0.25


class History:
    """Losses [set] of every update, and the gates [set, layer, head] of some of them."""

    def __init__(self, updates: int, logits: Float[Tensor, "set layer head"]) -> None:
        step = -(-updates // SNAPSHOTS)
        #: updates after which the gates are kept
        self.snapshot_updates = sorted({*range(0, updates + 1, step), updates})
        self.path: list[Tensor] = [torch.sigmoid(logits).cpu()]
        self.losses: list[Tensor] = []
        #: [set]: the update at which its loss or gradient was NaN or infinite first, 0 if it never was
        self._bad_at = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
        self._looked = -np.inf, 0.0

    def check(self, numbers: Float[Tensor, " set"], update: int) -> None:
        """Remember which sets have no number at this update, without waiting for a GPU."""
        bad = ~torch.isfinite(numbers) & (self._bad_at == 0)
        self._bad_at = torch.where(bad, update, self._bad_at)

    def append(
        self, losses: Float[Tensor, " set"], logits: Float[Tensor, "set layer head"], update: int
    ) -> None:
        """`update` counts from 1."""
        self.losses.append(losses)
        if update in self.snapshot_updates:
            self.path.append(torch.sigmoid(logits).cpu())

    def first_bad(self) -> tuple[int, int] | None:
        """(update, set) where numbers broke first: in the next pass all sets have none."""
        known = [(update, number) for number, update in enumerate(self._bad_at.tolist()) if update]
        return min(known, key=lambda entry: entry[0]) if known else None

    def should_look(self) -> bool:
        """Is it time to ask for the loss? On a GPU the host waits for it, and the GPU for the host
        afterwards."""
        return self._bad_at.device.type != "cuda" or time.monotonic() - self._looked[0] > _LOOK

    def look(self) -> None:
        self._looked = time.monotonic(), float(self.losses[-1].mean())

    @property
    def seen_loss(self) -> float:
        """The mean loss of the last update that was looked at."""
        return self._looked[1]

    def arrays(self) -> dict[str, np.ndarray]:
        sets = len(self._bad_at)
        losses = torch.stack(self.losses).cpu().numpy() if self.losses else np.zeros((0, sets), np.float32)
        return {"path": torch.stack(self.path).numpy(), "losses": losses}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.path = list(torch.from_numpy(arrays["path"].copy()))
        self.losses = list(torch.from_numpy(arrays["losses"].copy()).to(self._bad_at.device))
