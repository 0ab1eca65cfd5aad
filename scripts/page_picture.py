"""A picture of a page for the README.

python scripts/page_picture.py --page atlas-demo/atlas.html --head L23H4 --out page.png
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--head", required=True, help="whose card is open")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    chromium = next((path for path in found if path), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 1080}, device_scale_factor=1)
        page.goto(f"{arguments.page.resolve().as_uri()}#head={arguments.head}")
        page.wait_for_selector("#page[data-ready]")
        page.screenshot(path=str(arguments.out))
        browser.close()


if __name__ == "__main__":
    main()
