"""One HTML file: the bundle, the payload, and a policy that lets nothing in or out; of one atlas, or of two
beside each other."""

from __future__ import annotations

import base64
import html
import json
import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from headatlas.atlas import Atlas, require_atlas
from headatlas.core import RequestError, require_path, write_whole
from headatlas.page.payload import payload_of

__all__ = ["page_of", "write_page"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><p>This page needs JavaScript.</p></div>
<script type="application/json" id="payload">{payload}</script>
<script>{script}</script>
</body>
</html>
"""


def write_page(
    atlas: Atlas | str | Path, out: str | Path, *, other: Atlas | str | Path | None = None
) -> Path:
    """Write the page of an atlas (and of another, to compare) and return its path. It works from a folder,
    without a server and without a network."""
    path = require_path("out", out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise RequestError(f"{str(out)!r} is no page; its name ends in .html.")
    given = [one for one in (atlas, other) if one is not None]
    folders = [folder for one in given if (folder := _folder_of(one)) is not None]
    if len(set(folders)) < len(folders):
        raise RequestError(f"{folders[0]} twice: an atlas is compared with another one.")
    both = [require_atlas(one) for one in given]
    write_whole(path, page_of(payload_of(both)))
    return path


def _folder_of(atlas: Atlas | str | Path) -> Path | None:
    folder = atlas.path if isinstance(atlas, Atlas) else require_path("the folder of an atlas", atlas)
    return folder and folder.resolve()


def page_of(payload: dict[str, Any]) -> str:
    """The whole page; it asks for nothing that is not in it."""
    bundle = files("headatlas.page").joinpath("bundle")
    script, style = (bundle.joinpath(name).read_text("utf-8") for name in ("page.js", "page.css"))
    if "</script" in script.lower() or "</style" in style.lower():
        raise AssertionError("the bundle would end its own element")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    names = " and ".join(one["model"]["name"] for one in payload["atlases"])
    return _PAGE.format(
        policy=policy,
        title=html.escape(f"{names} – headatlas").encode(errors="replace").decode(),
        style=style,
        payload=_inert(payload),
        script=script,
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _inert(payload: dict[str, Any]) -> str:
    """JSON that no parser of HTML can take for markup, and any file can hold (half characters)."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", text)
