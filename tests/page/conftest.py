"""A real browser, and pages in it. Everything that it says on its console or asks for is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from page.building import chromium

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-quic",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
#: pictures of what the tests saw; kept for people to look at, never compared
PICTURES = Path(__file__).parents[2] / "artefacts" / "page"
WIDE, PHONE = {"width": 1400, "height": 1000}, {"width": 380, "height": 780}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever opens a page needs the browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@dataclass
class Visit:
    """A page that is open, with all that it said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def is_silent(self) -> bool:
        return self.said == [] and len(self.asked) == 1  # the file itself


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=chromium(),
            args=FLAGS,
            ignore_default_args=["--disable-ipc-flooding-protection"],  # as readers have it
        )
        yield found
        found.close()


@pytest.fixture
def visit(browser):
    """visit(path, hash, viewport) opens a page and waits until it can be used."""
    contexts = []

    def opened(path: Path, state: str = "", viewport: dict[str, int] = WIDE, **options: Any) -> Visit:
        context = browser.new_context(viewport=viewport, accept_downloads=True, **options)
        contexts.append(context)
        found = Visit(context.new_page())
        found.page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        found.page.on("dialog", lambda dialog: (found.said.append("dialog"), dialog.dismiss()))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(f"{path.as_uri()}{'#' + state if state else ''}")
        found.page.wait_for_selector("#page[data-ready]", timeout=30_000)
        return found

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def keep():
    """keep(page, name) writes a picture of the page as it is."""

    def picture(page: Any, name: str, **options: Any) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}.png", **options)

    return picture
