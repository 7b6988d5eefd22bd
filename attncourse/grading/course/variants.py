"""Which assignments are in a variant: ``variants.toml`` in the course's folder says it.

``attncourse release --variant`` writes it, and whatever reads the instructor's notebook reads it.
"""

import json
import tomllib
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors, replace_file
from attncourse.grading.report import count
from attncourse.grading.submission.varied import notebook_in_variant

VARIANTS_FILE = "variants.toml"
PUBLISHED = "published"  # what goes back to the convention of the book
VARIANTS_HEAD = "# The variants in which assignments were released: attncourse release --variant\n"


def variants_in(course: Path) -> dict[str, str]:
    """Return the variant of each assignment that is in one; none without ``variants.toml``."""
    path = course / VARIANTS_FILE
    try:
        choices = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # an editor may mark it
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}; mend it or delete it") from None
    for name, variant in choices.items():
        if not isinstance(variant, str):
            raise UserError(
                f'{path}: expected a variant\'s name for {name}, as in "11_positions" = "halves", '
                f"got {variant!r}"
            )
    return {name: variant for name, variant in choices.items() if variant != PUBLISHED}


def solved_in_variant(course: Path, path: Path) -> bytes:
    """Return the bytes of an instructor's solved notebook, in its assignment's variant."""
    variant, data = variants_in(course).get(path.parent.name), read_notebook_bytes(path)
    return notebook_in_variant(data, variant, path.parent.name) if variant else data


def read_notebook_bytes(path: Path) -> bytes:
    """Return a notebook's bytes; raise ``UserError`` if it cannot be read."""
    with explained_file_errors(path, doing="read"):
        if not path.exists():
            raise UserError(f"{path} is missing: make it with make exercises")
        return path.read_bytes()


def choose_variant(course: Path, name: str, variant: str) -> None:
    """Record the variant of an assignment; raise ``UserError`` if it has none of this name.

    And if students have handed in another one, which would then be graded as this.
    """
    chosen = variants_in(course)
    before = chosen.pop(name, PUBLISHED)
    if variant == before:
        return
    if variant != PUBLISHED:
        notebook_in_variant(
            read_notebook_bytes(course / "solutions" / name / f"{name}.ipynb"), variant, name
        )
        chosen[name] = variant
    if handed_in := list((course / "submitted").glob(f"*/{name}")):
        raise UserError(
            f"{name} was handed in as {before} by {count(len(handed_in), 'student')}, and would be "
            f"graded as {variant}: move submitted/*/{name} elsewhere first"
        )
    replace_file(course / VARIANTS_FILE, choices_text(chosen))


def choices_text(chosen: dict[str, str]) -> str:
    """Return the text of ``variants.toml`` with each assignment's variant."""
    lines = [
        f"{json.dumps(assignment)} = {json.dumps(variant)}\n"
        for assignment, variant in sorted(chosen.items())
    ]
    return VARIANTS_HEAD + "".join(lines)
