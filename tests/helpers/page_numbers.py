"""The numbers that a page prints."""

from __future__ import annotations

import re

import course as settings

from helpers.project import ROOT

SECTION = re.compile(r"^# ## (\d+) · `(\w+)`", re.MULTILINE)


def numbers_of(chapter: settings.Chapter) -> dict[str, str]:
    """The exercises of a chapter by name, as its notebook numbers them: `18.5`."""
    path = ROOT / "solutions" / chapter.folder / f"{chapter.folder}.py"
    sections = SECTION.findall(path.read_text(encoding="utf-8"))
    return {name: f"{chapter.number}.{number}" for number, name in sections}
