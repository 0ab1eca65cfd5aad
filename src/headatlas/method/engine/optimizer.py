"""Adam for many gate sets at once."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Adam", "clipped"]


class Adam:
    """The moments of every number; no gate set has a part in the steps of another."""

    def __init__(self, parameters: Float[Tensor, "set layer head"], momentum: tuple[float, float]) -> None:
        self.momentum = momentum
        self.mean, self.square = torch.zeros_like(parameters), torch.zeros_like(parameters)

    def step(
        self,
        parameters: Float[Tensor, "set layer head"],
        gradient: Float[Tensor, "set layer head"],
        rate: float,
        number: int,
    ) -> None:
        """Change the parameters in place; `number` counts steps from 1."""
        first, second = self.momentum
        self.mean.lerp_(gradient, 1 - first)
        self.square.lerp_(gradient.square(), 1 - second)
        mean = self.mean / (1 - first**number)
        size = (self.square / (1 - second**number)).sqrt() + 1e-8
        parameters -= rate * mean / size


def clipped(
    gradient: Float[Tensor, "set layer head"], norm: Float[Tensor, " set"], limit: float
) -> Float[Tensor, "set layer head"]:
    """The gradient of each set, at most `limit` long; `norm` says how long it is."""
    return gradient * (limit / (norm + 1e-6)).clamp(max=1).view(-1, 1, 1)
