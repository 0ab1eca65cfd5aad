"""Methods that fit: gating whose second stage is half as long as the first, and gating without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from headatlas.method import METHODS, GatingSettings, Method
from headatlas.method.gating import STAGES


@dataclass(frozen=True)
class ShortSettings(GatingSettings):
    @classmethod
    def of(cls, **given: Any) -> Self:
        settings = super().of(**given)
        stage = settings.pressed
        return replace(settings, pressed=replace(stage, updates=max(1, stage.updates // 2)))


def fit(*arguments: Any) -> Any:
    gating = METHODS["gating"].fit
    assert gating is not None
    return gating(*arguments)


PROVIDES = [
    Method(
        "short-gating",
        "Short gating",
        "gates with a short second stage",
        ShortSettings,
        fit=fit,
        stages=STAGES,
        unit="gate",
    ),
    Method(
        "free-gating", "Free gating", "gates without pressure", ShortSettings, fit=fit,
        stages={"free": ("free",)}, unit="gate",
    ),
]  # fmt: skip
