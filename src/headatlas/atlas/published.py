"""Figures of the papers, about other models. Only the `paper/` tasks have the data that they are about."""

from __future__ import annotations

from headatlas.atlas.atlas import Atlas

__all__ = ["PUBLISHED_MODELS", "PUBLISHED_SEEDS", "PUBLISHED_SHARES", "compares_with_paper"]

#: seeds per model and task; Always falls and Any rises with their number
PUBLISHED_SEEDS = 10

PUBLISHED_MODELS = ("Llama-3 1B", "3B", "3B-Instruct", "8B")
#: task -> Always or Any -> % of heads facilitating, interfering for each of the models
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


def compares_with_paper(atlas: Atlas, task: str) -> bool:
    """True if the task was fitted here on the paper's data, with the paper's number of seeds.

    The number of seeds decides about Always and Any. A file or an imported table may have any name, so the
    data must come from the hub.
    """
    facts = atlas.run(task).task_facts
    source = facts.get("spec", {}).get("source")
    return (
        task.startswith("paper/")
        and "imported_from" not in facts
        and isinstance(source, dict)
        and "hub" in source
        and len(atlas.seeds(task)) == PUBLISHED_SEEDS
    )
