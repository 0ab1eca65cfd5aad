"""Atlas -> one HTML file that a person can look around in. No torch here. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.page.html import write_page

__all__ = ["write_page"]

__getattr__, __dir__ = lazy_exports(__name__)
