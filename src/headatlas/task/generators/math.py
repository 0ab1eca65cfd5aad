"""Word problems with worked solutions, from reasoning-gym's `gsm_symbolic`."""

from __future__ import annotations

from collections.abc import Iterator

from headatlas.core import TaskError

__all__ = ["records"]

_REQUEST = " Give the result as your final answer. Do not include units."


def records(size: int = 10_000, seed: int = 1) -> Iterator[dict[str, str]]:
    """{"question", "solution", "template"} without repetition; the solution ends in "#### answer"."""
    try:
        import reasoning_gym
    except ImportError:
        raise TaskError(
            "the task 'math' needs reasoning-gym: pip install reasoning-gym (extra 'math')."
        ) from None
    data = reasoning_gym.create_dataset("gsm_symbolic", size=size, seed=seed)
    if not hasattr(data, "task_indices"):
        raise TaskError("this reasoning-gym does not tell the templates of its problems; install 0.1.19.")
    seen = set()
    for entry in data:
        question = entry["question"].removesuffix(_REQUEST).strip()
        solution = entry["metadata"]["answer_cot"].strip()
        if question not in seen and solution.endswith(f"#### {entry['answer']}"):
            seen.add(question)
            template = data.task_indices[entry["metadata"]["source_index"]]
            yield {"question": question, "solution": solution, "template": str(template)}
