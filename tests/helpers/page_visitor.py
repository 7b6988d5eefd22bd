"""A reader of the built book, wide and on a phone, and the rules of accessibility."""

from __future__ import annotations

from functools import cache

import vendor
from playwright.sync_api import Browser, BrowserContext

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# It reads no style sheets beforehand: what asks for them is experimental, and not among these.
AXE = """tags => axe.run(document, {runOnly: tags, resultTypes: ["violations"],
    preload: {assets: ["media"]}}).then(
    found => found.violations.map(
    one => [one.id, ...one.nodes.slice(0, 3).map(node => node.target.join(" "))]))"""


def visitor(browser: Browser, **options) -> BrowserContext:
    """Somebody who reads: it jumps, where it would glide for seconds."""
    options = {"viewport": WIDE, "color_scheme": "light", "reduced_motion": "reduce"} | options
    made = browser.new_context(**options)
    made.set_default_timeout(60_000)
    return made


@cache
def axe() -> str:
    return (vendor.library("axe-core") / "axe.min.js").read_text(encoding="utf-8")
