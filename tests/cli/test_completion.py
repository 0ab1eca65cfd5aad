"""The help that comes first, and what a shell is told when somebody presses the tab key."""

from __future__ import annotations

import pytest

from support.cli import invoke

FIRST = ("demo", "map MODEL --task T", "page DIR")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("headatlas ex", {"export"}),
        ("headatlas co", {"contrast", "compare"}),
        ("headatlas map --pre", {"--preset"}),
    ],
)
def test_commands_and_options_are_completed(typed, offered):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    result = invoke(**words, _HEADATLAS_COMPLETE="complete_bash")
    assert set(result.stdout.split()) == offered, result.stderr


def test_the_help_fits_a_screen_and_begins_with_what_people_do_first():
    lines = invoke("--help", COLUMNS="80").stdout.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    places = [next(n for n, line in enumerate(lines) if f"headatlas {word}" in line) for word in FIRST]
    assert places == sorted(places) and places[-1] < 10
