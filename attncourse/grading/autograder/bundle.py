"""The zip that Gradescope makes an autograder of: two scripts, the assignment, this package.

See "Autograder Specifications", https://gradescope-autograders.readthedocs.io/en/latest/specs/:
``setup.sh`` and ``run_autograder`` in the root of the archive, which is unpacked to
``/autograder/source``.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

import attncourse
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.course.settings import follow_on_earns
from attncourse.grading.course.variants import VARIANTS_FILE, choices_text, variants_in
from attncourse.grading.files import replace_bytes, zip_archive

HERE = Path(__file__).parent
BUNDLED_PACKAGE = Path(attncourse.__file__).parent
SCRIPTS = ("setup.sh", "run_autograder")
SETTINGS = "settings.json"  # what nbgrader_config.py says of grading; there is no nbgrader there


def write_bundle(course: Path, name: str, output: Path | None = None) -> Path:
    """Write the zip of which Gradescope makes an autograder for an assignment; return its path."""
    find_assignment(course, name)
    place = output or course / "reports" / name / "gradescope-autograder.zip"
    modes = dict.fromkeys(SCRIPTS, 0o755)
    entries = (
        (path, content, modes.get(path, 0o644)) for path, content in zip_contents(course, name)
    )
    return replace_bytes(place, zip_archive(entries), way_out="; name another place")


def zip_contents(course: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file of the zip."""
    for script in SCRIPTS:
        # A checkout or a copy through Windows may end their lines as no shell takes them.
        yield script, (HERE / script).read_bytes().replace(b"\r\n", b"\n")
    yield "requirements.txt", "".join(f"{line}\n" for line in pinned_requirements()).encode()
    solved = f"solutions/{name}/{name}.ipynb"
    yield solved, (course / solved).read_bytes()
    if variant := variants_in(course).get(name):
        yield VARIANTS_FILE, choices_text({name: variant}).encode()
    yield SETTINGS, (json.dumps({"follow_on": follow_on_earns(course)}) + "\n").encode()
    for path in sorted(BUNDLED_PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(BUNDLED_PACKAGE.parent).as_posix(), path.read_bytes()


def pinned_requirements() -> list[str]:
    """Return the package's requirements, each pinned to the version installed here."""
    # In a repository this file is newer than what was noted when the package was installed.
    project = BUNDLED_PACKAGE.parent / "pyproject.toml"
    if project.is_file():
        needed = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    else:
        needed = [line for line in requires("attncourse") or () if "extra ==" not in line]
    names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed]
    return sorted(f"{name}=={version(name).partition('+')[0]}" for name in names)
