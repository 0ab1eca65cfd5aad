"""Values for the tests of registries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    name: str
    aliases: tuple[str, ...] = ()


PLUGGED = Thing("plugged")
ALPHA = Thing("alpha", ("other",))
GREEDY = Thing("greedy", ("a", "beta", "g"))


class NotThings:
    PROVIDES = (1,)
