"""One HTML file: the bundle, the payload, and a policy that lets nothing in or out."""

from __future__ import annotations

import base64
import html
import json
import re
from hashlib import sha256
from importlib.resources import files
from typing import Any

__all__ = ["page_of"]

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
