"""Figures of the papers, about other models. Only the `paper/` tasks have the data that they are about, and
only the published relations the categories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = [
    "PUBLISHED_DATA",
    "PUBLISHED_MODELS",
    "PUBLISHED_RELATIONS",
    "PUBLISHED_SEEDS",
    "PUBLISHED_SHARES",
    "are_published_relations",
    "compares_with_paper",
    "has_papers_data",
]

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


#: task -> the settings that choose its records; tests compare them with the built-in tasks
PUBLISHED_DATA: dict[str, dict[str, Any]] = {
    "paper/syntax": {
        "source": {
            "hub": "tasksource/bigbench",
            "configs": ["linguistic_mappings", "tense", "subject_verb_agreement"],
            "split": "train",
            "test_split": "validation",
            "transform": "first_target",
        },
        "shortest": None,
    },
    "paper/commonsense": {
        "source": {
            "hub": "tau/commonsense_qa",
            "split": "train",
            "test_split": "validation",
            "transform": "lettered_choices",
        },
        "shortest": None,
    },
    "paper/math": {
        "source": {
            "hub": "nvidia/OpenMathInstruct-2",
            "split": "train_1M",
            "columns": {"question": "problem", "solution": "generated_solution"},
        },
        "shortest": 55050,
    },
}
#: the relations that make up the published categories; tests compare them with the built-in relations
PUBLISHED_RELATIONS = frozenset(
    {
        "copying", "name-copying", "first-letter", "last-letter", "next-year",
        "country-capital", "country-language", "object-superclass", "product-company", "work-location",
        "antonym", "comparative", "superlative", "noun-pronoun", "past-tense", "homophone", "synonym",
        "compound",
        "english-french", "english-spanish",
    }
)  # fmt: skip


def has_papers_data(atlas: Atlas, task: str) -> bool:
    """True if the task was fitted here on the records of the paper's task. A file, an imported table or
    another data set on the hub may have any name."""
    facts = atlas.run(task).task_facts
    wanted, spec = PUBLISHED_DATA.get(task), facts.get("spec") or {}
    if wanted is None or "imported_from" in facts:
        return False
    return all(spec.get(key) == value for key, value in wanted.items())


def compares_with_paper(atlas: Atlas, task: str) -> bool:
    """True if the task has the paper's data, metric and number of seeds, which decides about Always and
    Any."""
    has_papers_metric = "metric" not in atlas.run(task).decides
    return has_papers_metric and has_papers_data(atlas, task) and len(atlas.seeds(task)) == PUBLISHED_SEEDS


def are_published_relations(atlas: Atlas, relations: Iterable[str]) -> bool:
    """True if all of these are built-in lists of published relations. The licence tells a built-in list from
    a file of the same name, which states none."""
    return all(
        name in PUBLISHED_RELATIONS and atlas.run(name, "relations").task_facts.get("licence") is not None
        for name in relations
    )
