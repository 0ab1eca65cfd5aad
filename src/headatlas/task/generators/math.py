"""Word problems with worked solutions, from reasoning-gym's `gsm_symbolic`; the shortest ones are used."""

from __future__ import annotations

from collections.abc import Iterator

from headatlas.core import TaskError

__all__ = ["records"]

_REQUEST = " Give the result as your final answer. Do not include units."


def records(size: int = 10_000, seed: int = 1) -> Iterator[dict[str, str]]:
    """{"question", "solution"} without repetition; the solution ends in "#### answer"."""
    try:
        import reasoning_gym
    except ImportError:
        raise TaskError(
            "the task 'math' needs reasoning-gym: pip install reasoning-gym (extra 'math')."
        ) from None
    seen = set()
    for entry in reasoning_gym.create_dataset("gsm_symbolic", size=size, seed=seed):
        question = entry["question"].removesuffix(_REQUEST).strip()
        solution = entry["metadata"]["answer_cot"].strip()
        if question not in seen and solution.endswith(f"#### {entry['answer']}"):
            seen.add(question)
            yield {"question": question, "solution": solution}
