"""A notebook of functions to mend, chosen by what checks named in a student's notebooks."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attncourse import STEMS
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.names import did_you_mean
from attncourse.grading.report import count
from attncourse.grading.seeds import whole_number
from attncourse.practice.cells import notebook_text, practice_notebook
from attncourse.practice.drills import Drill, drills_of
from attncourse.practice.order import EXACT, NamedMistake, as_sentence, nearness, ordered_drills

NAMED = re.compile(r"✗ (\w+\.\w+): [^\n]*\n(?:(?!✗ \w+\.\w+:)[^\n]*\n)*?What happened: ([^\n]+)")
MARKUP = re.compile(r"\x1b\[[0-9;]*m")  # colours, which some programs save with an error's text
SUBMITTED = "submitted"  # an instructor's folder of what students have handed in
MAX_DRILLS_OF_NOTEBOOK = 99


@dataclass(frozen=True)
class SavedOutputs:
    """The mistakes in the saved outputs of a folder's notebooks, the most frequent first.

    ``notebooks`` are those of the chapter, ``with_outputs`` those of them that hold any output, and
    ``unreadable`` the files that could not be read.
    """

    named: tuple[NamedMistake, ...] = ()
    notebooks: tuple[Path, ...] = ()
    with_outputs: int = 0
    unreadable: tuple[Path, ...] = ()


@dataclass(frozen=True)
class PracticeMade:
    """The notebook that was written, how many drills it has, and remarks for the student."""

    path: Path
    drills: int
    remarks: tuple[str, ...]


def write_practice(
    chapter: str,
    number: int,
    seed: str,
    folder: Path,
    output: Path | None = None,
) -> PracticeMade:
    """Write a notebook of a chapter's drills; no file that is there is touched.

    Raises ``UserError`` for what is no chapter, for one without drills, for more than there are,
    for a folder that is not there, and for a seed that is no number.
    """
    stem = chapter_stem(chapter)
    all_drills = drills_or_error(stem, chapter)
    if number > len(all_drills):
        raise UserError(
            f"{chapter} has {count(len(all_drills), 'drill')}: --number {len(all_drills)}"
        )
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name the one with your notebooks, --folder")
    saved = saved_outputs(folder, stem)
    chosen = ordered_drills(
        all_drills, saved.named, whole_number(seed, random.SystemRandom().randrange(10**6))
    )[:number]
    place = output or free_place(folder, chapter_folder(stem))
    if place.exists():
        raise UserError(f"{place} is there already: move it away, or name another with --output")
    replace_file(place, notebook_text(practice_notebook(stem, chosen)))
    return PracticeMade(place, len(chosen), tuple(remarks_on(saved, folder, chapter, chosen)))


def chapter_stem(chapter: str) -> str:
    """Return the stem of a chapter that is given as ``05_kqv`` or ``kqv``; or ``UserError``."""
    bare = chapter.rstrip("/")
    stems = {chapter_folder(stem): stem for stem in STEMS} | {stem: stem for stem in STEMS}
    if bare not in stems:
        hint = did_you_mean(bare, stems)
        raise UserError(f"no chapter is called {bare}{hint or ': name one as its folder, 05_kqv'}")
    return stems[bare]


def chapter_folder(stem: str) -> str:
    """Return the name of a chapter's folder, ``05_kqv``."""
    return f"{STEMS.index(stem) + 1:02d}_{stem}"


def drills_or_error(stem: str, chapter: str) -> tuple[Drill, ...]:
    """Return a chapter's drills; raise ``UserError`` if it has none."""
    drills = drills_of(stem)
    if not drills:
        having = [chapter_folder(other_stem) for other_stem in STEMS if drills_of(other_stem)]
        alternatives = f": there are some for {', '.join(having)}" if having else ""
        raise UserError(f"{chapter} has no drills yet{alternatives}")
    return drills


def free_place(folder: Path, name: str) -> Path:
    """Return a path in a folder for a new file of about this name."""
    home = folder / name if (folder / name).is_dir() else folder
    for number in range(1, MAX_DRILLS_OF_NOTEBOOK):
        place = home / f"{name}_practice{'' if number == 1 else f'_{number}'}.ipynb"
        if not place.exists():
            return place
    raise UserError(f"{home} is full of practice notebooks: move some away, or name an --output")


# --- what a student's notebooks show --------------------------------------------------------------


def saved_outputs(folder: Path, stem: str) -> SavedOutputs:
    """Return what checks named in the notebooks of a chapter in and below a folder."""
    times: Counter[NamedMistake] = Counter()
    notebooks, n_shown, unreadable = [], 0, []
    for path in notebooks_below(folder):
        try:
            cells = json.loads(path.read_bytes().decode("utf-8-sig"))["cells"]
            texts = list(output_texts(cells))
            sources = ["".join(cell.get("source", "")) for cell in cells]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            unreadable.append(path)
            continue
        if not any(f"{stem}." in source for source in sources):
            continue
        notebooks.append(path)
        n_shown += bool(texts)
        for text in texts:
            for target, sentence in NAMED.findall(MARKUP.sub("", text)):
                if target.startswith(f"{stem}."):
                    times[NamedMistake(target, as_sentence(sentence))] += 1
    mistakes = tuple(mistake for mistake, _ in times.most_common())
    return SavedOutputs(mistakes, tuple(notebooks), n_shown, tuple(unreadable))


def notebooks_below(folder: Path) -> Iterator[Path]:
    """Yield the notebooks in and below a folder, without hidden and submitted ones."""
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        if path.is_file() and SUBMITTED not in parts and not any(p[0] == "." for p in parts):
            yield path


def output_texts(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the plain texts of a notebook's outputs."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            for part in (data.get("text/plain"), output.get("text"), output.get("evalue")):
                if part:
                    yield "".join(part)


def remarks_on(
    saved: SavedOutputs, folder: Path, chapter: str, chosen: list[Drill]
) -> Iterator[str]:
    """Yield sentences on where the drills come from, and on what could not be read."""
    for path in saved.unreadable:
        yield f"not read: {path} is no notebook, or damaged; download it again"
    by_lot = "so these are drawn by lot"
    if not saved.notebooks:
        yield f"no notebook of {chapter} in {folder}, {by_lot}: --folder names where yours are"
    elif not saved.with_outputs:
        yield (
            f"{saved.notebooks[0]} holds no outputs, {by_lot}: run its checks and save it, and "
            "what they name comes first"
        )
    elif saved.named:
        exact = sum(nearness(drill, saved.named) == EXACT for drill in chosen)
        if exact:
            yield f"{count(exact, 'drill')} of what your checks named; the others are near it"
