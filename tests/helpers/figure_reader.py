"""Moving figures as a reader has them: one small page in Chromium, made from ``_repr_html_()``."""

from __future__ import annotations

import pytest
from chromium import ABSENT, BROWSER
from playwright.sync_api import Browser, Locator, Page

needs_browser = pytest.mark.skipif(BROWSER is None, reason=ABSENT)
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>t</title>'
    "<body style='margin: 1rem'>{}</body></html>"
)


class FigureReader:
    """A page that holds figures, and what went wrong on it: errors, requests to anywhere."""

    def __init__(self, browser: Browser, *figures, width: int = 1280, **options):
        options.setdefault("reduced_motion", "reduce")
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        self.page.on("request", self.check_request)
        self.page.set_content(PAGE.format("".join(figure._repr_html_() for figure in figures)))
        self.figure: Locator = self.page.locator(".attncourse-moving").first

    def check_request(self, request) -> None:
        """Nothing is asked for but what the page itself has made."""
        if not request.url.startswith("blob:"):
            self.wrong.append(request.url)

    def compute(self, *inputs):
        """What the figure's own ``root.compute`` makes of the inputs."""
        return self.figure.evaluate("(root, inputs) => root.compute(...inputs)", list(inputs))

    @property
    def now(self):
        """What the figure shows at the moment, unrounded."""
        return self.figure.evaluate("root => root.now")

    @property
    def says(self) -> str:
        return self.figure.locator("[role=status]").inner_text()

    def button(self, name: str) -> Locator:
        return self.figure.get_by_role("button", name=name, exact=True)

    def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        return self.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def small_text(self) -> list[str]:
        """Texts that are shown smaller than 12 pixels."""
        return self.figure.evaluate("""root => [...root.querySelectorAll("*")].filter(node =>
            node.checkVisibility() && [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())
            && !["STYLE", "SCRIPT"].includes(node.tagName)
            && parseFloat(getComputedStyle(node).fontSize)
              * (node.ownerSVGElement?.getScreenCTM().a ?? 1) < 11.99)
            .map(node => `${node.tagName}: ${node.textContent}`)""")  # noqa: E501

    def close(self) -> None:
        self.context.close()
