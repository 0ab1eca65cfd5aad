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
    """Map SmolLM2 on math and syntax and draw the Always/Any figure: some minutes on two cores.

    Called again it goes on where it was, or shows what is there.
    """
    from headatlas.atlas import Store
    from headatlas.cli.map import map_
    from headatlas.cli.plot import plot

    map_("smollm2", ["math", "syntax"], out=out, resume=Store.exists(Path(out)))
    plot(out, kind="agreement")
    Console(soft_wrap=True, highlight=False).print(
        f"[dim]the map: {escape(out)}/agreement.png; other figures: headatlas plot {escape(out)} --kind …[/]"
    )
