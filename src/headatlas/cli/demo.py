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
    from headatlas import AtlasError, load_task
    from headatlas.atlas import Store
    from headatlas.cli.loading import load_shown
    from headatlas.cli.map import show_map
    from headatlas.cli.plot import plot

    there = Store.exists(Path(out))
    tasks = [load_task(name) for name in ("math", "syntax")]
    loaded = load_shown("smollm2", "fast", None, None, None, False)
    try:
        show_map(loaded, tasks, out, resume=there, goes_on="calling the demo again")
    except AtlasError as error:
        if not there:
            raise
        raise AtlasError(f"{error} For the demo: delete {out} and call it again.") from error
    plot(out, kind="agreement")
    Console(soft_wrap=True, highlight=False).print(
        f"[dim]the atlas is in {escape(out)}; other figures: headatlas plot {escape(out)} --kind …[/]"
    )
