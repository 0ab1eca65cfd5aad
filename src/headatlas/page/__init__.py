"""Atlas -> one HTML file that a person can look around in. No torch here. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headatlas.core.registry import lazy_exports

if TYPE_CHECKING:
    from headatlas.page.html import page_of, write_page
    from headatlas.page.payload import SCHEMA_VERSION, payload_of, schema

__all__ = ["SCHEMA_VERSION", "page_of", "payload_of", "schema", "write_page"]

__getattr__, __dir__ = lazy_exports(__name__)
