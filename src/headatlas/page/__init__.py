"""Atlas -> one HTML file that a person can look around in. No torch here."""

from headatlas.page.html import page_of
from headatlas.page.payload import SCHEMA_VERSION, payload_of, schema
from headatlas.page.write import write_page

__all__ = ["SCHEMA_VERSION", "page_of", "payload_of", "schema", "write_page"]
