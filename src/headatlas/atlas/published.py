"""Figures of the papers, to stand beside ours: other models, other tasks of the same name."""

from __future__ import annotations

__all__ = ["PUBLISHED_MODELS", "PUBLISHED_SHARES"]

PUBLISHED_MODELS = ("Llama-3 1B", "3B", "3B-Instruct", "8B")
#: task -> Always or Any -> % of heads facilitating, interfering for each of the models (ten seeds)
PUBLISHED_SHARES: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {
    "syntax": {
        "always": ((1.2, 0.2), (1.5, 0.1), (0.7, 0.0), (1.4, 0.0)),
        "any": ((72.1, 57.2), (67.9, 51.3), (72.8, 56.1), (68.5, 59.2)),
    },
    "commonsense": {
        "always": ((3.9, 0.0), (4.5, 0.0), (3.0, 0.0), (18.7, 0.6)),
        "any": ((56.6, 41.0), (75.4, 52.4), (68.2, 55.7), (60.3, 22.2)),
    },
    "math": {
        "always": ((38.3, 0.4), (24.6, 1.3), (18.3, 0.1), (25.3, 1.0)),
        "any": ((81.1, 26.0), (75.1, 13.8), (74.4, 47.2), (75.0, 21.2)),
    },
}
