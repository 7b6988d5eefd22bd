"""The course as `_config.yml` and `_toc.yml` give it: where it lives and which chapters it has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from install_cell import install_cell

from attncourse import __version__

ROOT = Path(__file__).resolve().parent.parent
COLAB = "https://colab.research.google.com"


class CourseError(Exception):
    """A source file is not as it should be; the message says which and what to do."""


@dataclass(frozen=True)
class Chapter:
    """A chapter by its number and the stem of its files."""

    number: int
    stem: str

    @property
    def folder(self) -> str:
        """The name where people browse: `02_mixing`."""
        return f"{self.number:02d}_{self.stem}"

    @property
    def page(self) -> str:
        """The page's name in `_toc.yml`: `book/02_mixing`."""
        return f"book/{self.folder}"


@dataclass(frozen=True)
class Course:
    """The course as its configuration and its table of contents have it."""

    root: Path
    title: str
    url: str
    branch: str
    pages: tuple[str, ...]
    """Every page in reading order, as `_toc.yml` names it: no suffix."""
    chapters: tuple[Chapter, ...]
    site: str = ""
    """Where the built book stands, with a slash at the end; empty where that is not known."""
    author: str = ""

    @property
    def slug(self) -> str:
        """`owner/name`, the part of the repository's address that Colab wants."""
        return "/".join(self.url.rstrip("/").removesuffix(".git").split("/")[-2:])

    def colab(self, path: str) -> str:
        """Return the address that opens a notebook in Colab."""
        return f"{COLAB}/github/{self.slug}/blob/{self.branch}/{path}"

    def badge(self, path: str) -> str:
        """Return the Markdown of an *Open in Colab* badge for a notebook of the repository."""
        return f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({self.colab(path)})"

    def blob(self, path: str) -> str:
        """Return where a reader sees a file of the repository."""
        return f"{self.url}/blob/{self.branch}/{path}"

    def raw(self, path: str) -> str:
        """Return where a notebook finds an image of the repository."""
        return f"{self.url}/raw/{self.branch}/{path}"

    def chapter(self, page: str) -> Chapter | None:
        """Return the chapter that a page is; None where it is none."""
        return next((c for c in self.chapters if c.page == page), None)

    def install(self, stem: str = "") -> str:
        """Return the source of the cell that installs what a chapter's notebook needs."""
        return install_cell(self.url, self.branch, __version__, stem)


def site(config: dict) -> str:
    """Return `html.baseurl` of the settings, else the address of the repository's GitHub pages."""
    if named := config.get("html", {}).get("baseurl"):
        return named.rstrip("/") + "/"
    url = config["repository"]["url"].rstrip("/").removesuffix(".git")
    github = re.fullmatch(r"https://github\.com/([\w-]+)/([\w.-]+)", url)
    if github is None:
        return ""
    host, name = f"{github[1].lower()}.github.io", github[2]
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"


def load(root: Path = ROOT) -> Course:
    """Return the course in a folder; raise ``CourseError`` for a page out of place."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages, chapters = [toc["root"]], []
    for part in toc.get("parts", []):
        for entry in part["chapters"]:
            pages.append(entry["file"])
            number = len(chapters) + 1
            name = re.fullmatch(r"book/(\d\d)_([a-z_]+)", entry["file"])
            if not part.get("numbered"):
                if name is not None:
                    raise CourseError(
                        f"_toc.yml: {entry['file']} is called like a chapter and stands in a part "
                        "without numbered: true; give the part that, or the page another name"
                    )
                continue
            if name is None or int(name[1]) != number:
                raise CourseError(
                    f"_toc.yml: chapter {number} is {entry['file']}; "
                    f"its page should be book/{number:02d}_<stem>"
                )
            chapters.append(Chapter(number, name[2]))
    repository = config["repository"]
    return Course(
        root,
        config["title"],
        repository["url"].rstrip("/"),
        repository["branch"],
        tuple(pages),
        tuple(chapters),
        site(config),
        config.get("author", ""),
    )


loaded = cache(load)
"""The same, read once: for a build, during which settings do not change."""
