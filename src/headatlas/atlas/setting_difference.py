"""In what two maps that are compared were made differently, beside their model and task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["setting_differences"]


def setting_differences(one: Atlas, other: Atlas, task: str, other_task: str) -> list[str]:
    """The dtype, the objective and the updates in which the gates of two tasks differ, in words. What an
    atlas does not tell, such as one that was imported, differs from nothing."""
    pairs = [_settings(atlas, name) for atlas, name in ((one, task), (other, other_task))]
    return [
        f"{name} {pairs[0][name]} and {pairs[1][name]}"
        for name in pairs[0]
        if None not in (pairs[0][name], pairs[1][name]) and pairs[0][name] != pairs[1][name]
    ]


def _settings(atlas: Atlas, task: str) -> dict[str, Any]:
    run = atlas.run(task)
    resolved = run.settings.get("resolved", {})
    stages = [resolved.get(stage, {}).get("updates") for stage in ("free", "pressed")]
    updates = None if None in stages else " + ".join(map(str, stages))
    return {"dtype": run.decides.get("dtype"), "objective": resolved.get("objective"), "updates": updates}
