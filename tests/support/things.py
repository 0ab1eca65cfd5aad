"""Values for the tests of registries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    name: str
    aliases: tuple[str, ...] = ()


PLUGGED = Thing("plugged")


class NotThings:
    PROVIDES = (1,)
