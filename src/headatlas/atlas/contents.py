"""What an atlas holds, by kind of result."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from headatlas.atlas.contrasts import contrasts_of
from headatlas.core import plural

if TYPE_CHECKING:
    from headatlas.atlas.atlas import Atlas

__all__ = ["Contents", "contents_of"]

#: relations beyond this many are counted, not named
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Contents:
    """What an atlas holds: gated `tasks`, measured `effects` as (task, method), `contrasts`, `relations`,
    `imported` task scores, and tasks that are `unfinished`. False if it holds nothing."""

    tasks: tuple[str, ...] = ()
    effects: tuple[tuple[str, str], ...] = ()
    contrasts: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self) if field.name != "unfinished")

    def __str__(self) -> str:
        names = [", ".join(self.tasks)] if self.tasks else []
        names += [f"{method} of {task}" for task, method in self.effects]
        names += [f"contrast {name}" for name in self.contrasts]
        if self.relations:
            is_short = len(self.relations) <= _MAX_NAMED
            listed = f" ({', '.join(self.relations)})" if is_short else ""
            names.append(f"{plural(len(self.relations), 'relation')}{listed}")
        names += [f"imported: {', '.join(self.imported)}"] if self.imported else []
        names += [f"unfinished: {', '.join(self.unfinished)}"] if self.unfinished else []
        return "; ".join(names) or "nothing is finished yet"


def contents_of(atlas: Atlas) -> Contents:
    """List what an atlas holds."""
    effects = tuple(atlas.effect_maps)
    finished = {*atlas.tasks, *contrasts_of(atlas), *atlas.relations, *atlas.imported}
    finished |= {task for task, _ in effects}
    unfinished = dict.fromkeys(task for _, task in atlas.runs if task not in finished)
    return Contents(
        tuple(atlas.tasks),
        effects,
        tuple(contrasts_of(atlas)),
        tuple(atlas.relations),
        tuple(atlas.imported),
        tuple(unfinished),
    )
