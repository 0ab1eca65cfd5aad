"""The command line: thin, one file per command, calls the public API only."""

from __future__ import annotations

from headatlas.cli.app import main

__all__ = ["main"]
