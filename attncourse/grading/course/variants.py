"""Which assignments are in a variant: ``variants.toml`` in the course's folder says it.

``attncourse release --variant`` writes it, and whatever reads the instructor's notebook reads it.
"""

import json
import tomllib
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.submission.varied import varied

FILE = "variants.toml"
PUBLISHED = "published"  # what goes back to the convention of the book
HEAD = "# The variants in which assignments were released: attncourse release --variant\n"


def variants_in(course: Path) -> dict[str, str]:
    """The variant of each assignment that is in one."""
    path = course / FILE
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}; mend it or delete it") from None
    for name, variant in found.items():
        if not isinstance(variant, str):
            raise UserError(
                f'{path}: expected a variant\'s name for {name}, as in "11_positions" = "halves", '
                f"got {variant!r}"
            )
    return found


def solved(course: Path, path: Path) -> bytes:
    """An instructor's solved notebook, in the variant of its assignment."""
    variant, data = variants_in(course).get(path.parent.name), read(path)
    return varied(data, variant, path.parent.name) if variant else data


def read(path: Path) -> bytes:
    """A notebook's bytes. Raises ``UserError`` where there is no reading them."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} is missing: make it with make exercises") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def choose(course: Path, name: str, variant: str) -> None:
    """Records the variant of an assignment. Raises ``UserError`` where it has none of this name."""
    chosen = variants_in(course)
    before = dict(chosen)
    chosen.pop(name, None)
    if variant != PUBLISHED:
        varied(read(course / "solutions" / name / f"{name}.ipynb"), variant, name)
        chosen[name] = variant
    if chosen != before:
        lines = [f"{json.dumps(one)} = {json.dumps(of)}\n" for one, of in sorted(chosen.items())]
        replace_file(course / FILE, HEAD + "".join(lines))
