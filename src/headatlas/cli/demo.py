"""`headatlas demo`: the main job on the embedded model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

__all__ = ["demo"]


def demo(
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of the atlas.")] = "atlas-demo",
) -> None:
    """Both maps of SmolLM2: relations from its weights, then math and syntax by gating; with their figures,
    a report and a page. Some minutes on two cores.

    Called again it goes on where it was, or shows what is there.
    """
    from headatlas import AtlasError, MapRequest, RelationsRequest
    from headatlas.cli.map import show_map
    from headatlas.cli.page import page
    from headatlas.cli.plot import plot
    from headatlas.cli.relations import show_relations
    from headatlas.cli.report import report

    exists = Path(out, "atlas.json").exists()
    goes_on = "'headatlas demo'"
    try:
        # weights are read as they are stored; gates are fitted in the quickest dtype
        show_relations(RelationsRequest.of("smollm2"), out, resume=exists, goes_on=goes_on)
        typer.echo()
        show_map(MapRequest.of("smollm2", ["math", "syntax"]), out, resume=True, goes_on=goes_on)
    except AtlasError as error:
        if not exists:
            raise
        raise AtlasError(f"{error} For the demo: delete {out} and call it again.") from error
    for kind in ("agreement", "categories"):
        plot(out, kind=kind)
    report(out, out=str(Path(out) / "report.md"), as_json=False)
    page(out, out=None, other=None)
    Console(soft_wrap=True, highlight=False).print(
        f"[dim]the atlas is in {escape(out)}; other figures: headatlas plot {escape(out)} --kind …; "
        f"one head: headatlas head {escape(out)} L23H2[/]"
    )
