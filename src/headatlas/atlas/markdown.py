"""Text of an atlas that may come from elsewhere, for Markdown."""

from __future__ import annotations

import re

__all__ = ["escape_markdown"]

#: Characters that begin or end emphasis, code, links and cells; a lone bracket, as of an interval, does not.
_SPECIAL = re.compile(
    r"""[*`~|]
    |\\(?=[!-/:-@\[-`{-~]|$)     # a backslash escapes punctuation
    |\](?=[(\[:])                # the end of a link's text
    |(?<![^\W_])_|_(?![^\W_])     # an underscore inside a word is plain
    |(?<=^)[\#+>-](?=\s)          # a heading, quote or list
    """,
    re.VERBOSE,
)


def escape_markdown(text: str) -> str:
    """The text so that Markdown shows it as it is: one line without markup, HTML or a cell's end."""
    line = " ".join(text.splitlines())
    escaped = _SPECIAL.sub(r"\\\g<0>", line)
    return re.sub(r"&(?=#?\w+;)", "&amp;", escaped).replace("<", "&lt;")
