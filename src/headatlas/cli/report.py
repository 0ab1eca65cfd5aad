"""`headatlas report DIR`: the findings in words and numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from headatlas.cli.options import AsJson

__all__ = ["report"]


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="FILE.md or FILE.json instead of the terminal.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What the atlas shows, as numbers with intervals and tests: density, depth, overlap, stability and,
    after 'headatlas validate', sufficiency. Markdown, or JSON."""
    from headatlas import RequestError, open_atlas
    from headatlas.atlas import (
        contrast_doubts,
        contrasts_of,
        doubts,
        effect_doubts,
        find,
        made_how,
        report_markdown,
        summarize_contrast,
    )
    from headatlas.core import write_whole

    ending = Path(out).suffix.lower() if out else ""
    if out and ending not in (".md", ".json"):
        raise RequestError(f"--out {out} is no report; its name ends in .md or .json.")
    if as_json and ending == ".md":
        raise RequestError(f"--json and --out {out} are two formats; give one of them.")
    atlas = open_atlas(folder)
    found = find(atlas)
    if as_json or ending == ".json":
        data = {
            "model": atlas.spec.name,
            "made": {task: made_how(atlas, task) for task in atlas.tasks},
            "doubts": {task: [one.to_json() for one in doubts(atlas, task)] for task in atlas.tasks},
            "effect_doubts": {
                f"{task}, {method}": [one.to_json() for one in effect_doubts(atlas, task, method)]
                for task, method in atlas.effect_maps
            },
            "contrasts": [
                {
                    **asdict(summarize_contrast(atlas, name)),
                    "doubts": [one.to_json() for one in contrast_doubts(atlas, name)],
                }
                for name in contrasts_of(atlas)
            ],
            "findings": [one.to_json() for one in found],
        }
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    else:
        text = report_markdown(atlas, found)
    if out:
        write_whole(Path(out), text)
        typer.echo(out)
    else:
        typer.echo(text, nl=False)
