"""The browser that prints the book and reads its pages in tests: Debian's Chromium.

Its headless shell comes first: without windows and menus it takes a third of the time.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

BROWSER_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
)
BROWSER = next(filter(None, map(shutil.which, BROWSER_NAMES)), None)
ABSENT = "Chromium is not installed; on Debian: apt install chromium"  # why a test is skipped
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")


@contextmanager
def launched(*flags: str) -> Iterator:
    """Give the browser to the block, for playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", *flags])
        yield made
        made.close()
