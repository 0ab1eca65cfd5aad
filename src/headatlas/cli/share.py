"""`headatlas share …`: an atlas that goes somewhere else, or comes from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

__all__ = ["share"]

share = typer.Typer(
    help="An atlas as a zip file, to the hub or from it.",
    short_help="An atlas as a zip file, to the hub or from it.",
    no_args_is_help=True,
)
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Folder of an atlas.")]
Repo = Annotated[str, typer.Argument(metavar="USER/NAME", help="Dataset repository on the hub.")]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")]


@share.command("pack")
def pack(folder: Folder, out: Annotated[str, typer.Option("--out", "-o", help="Zip file.")]) -> None:
    """All results of an atlas in one zip file; anyone can unpack it, or open the folder in it."""
    from headatlas import RequestError, pack_atlas

    if Path(out).suffix.lower() != ".zip":
        raise RequestError(f"{out}: a packed atlas is a .zip file.")
    made = pack_atlas(folder, out)
    size = made.stat().st_size
    _say(f"{made} ({size / 1e6:.1f} MB)" if size > 1e5 else f"{made} ({size / 1e3:.0f} kB)")


@share.command("unpack")
def unpack(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Zip file.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder that is made.")],
) -> None:
    """The atlas in a zip file, as a folder: only what an atlas has, whole or not at all."""
    from headatlas import unpack_atlas

    _say(str(unpack_atlas(file, out)))


@share.command("upload")
def upload(
    folder: Folder,
    repo: Repo,
    public: Annotated[bool, typer.Option("--public", help="For all to see.")] = False,
    revision: Revision = None,
) -> None:
    """Put an atlas on the hub, as the user who is logged in there (hf auth login)."""
    from headatlas import upload_atlas

    _say(upload_atlas(folder, repo, private=not public, revision=revision))


@share.command("download")
def download(
    repo: Repo,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder that is made.")],
    revision: Revision = None,
) -> None:
    """An atlas from the hub."""
    from headatlas import download_atlas

    _say(str(download_atlas(repo, out, revision=revision)))


def _say(text: str) -> None:
    Console(soft_wrap=True, highlight=False).print(escape(text))
