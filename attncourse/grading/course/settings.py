"""The course's nbgrader configuration, read as nbgrader reads it."""

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attncourse.grading.errors import UserError
from attncourse.grading.isolation import NO_CONFIGURATION

if TYPE_CHECKING:
    from traitlets.config import Config

COURSE_ID = "attention"  # where the configuration does not say


def require_nbgrader() -> None:
    """Raise ``UserError`` where nbgrader is not installed."""
    if importlib.util.find_spec("nbgrader") is None:
        raise UserError("nbgrader is not installed: pip install 'attncourse[grade]'")
    # nbgrader makes its tables with the `alembic` command, which lies beside this Python.
    scripts_folder = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if scripts_folder not in path.split(os.pathsep):
        os.environ["PATH"] = f"{scripts_folder}{os.pathsep}{path}"
    with skipping_address_grammar():
        import nbformat  # noqa: F401


@contextmanager
def skipping_address_grammar() -> Iterator[None]:
    """Keep jsonschema, in the block, from building a grammar of web addresses, which takes long.

    It is for a kind of schema that no notebook has; jsonschema does without where it is missing.
    """
    name = "rfc3987_syntax"
    if name in sys.modules:
        yield
        return
    vars(sys)["modules"][name] = None  # no import finds it
    try:
        yield
    finally:
        del sys.modules[name]


def read_settings(course: Path) -> "Config":
    """Return nbgrader's settings: the user's, over which the course's own have the last word."""
    from jupyter_core.paths import jupyter_config_path
    from traitlets.config import Application

    reader = Application()
    reader.raise_config_file_errors = True
    folders = [str(course.resolve())]  # the first one counts most
    if not os.environ.get(NO_CONFIGURATION):  # Jupyter makes an empty folder for it, and leaves it
        folders += jupyter_config_path()
    try:
        with course_modules_importable(course):
            reader.load_config_file("nbgrader_config", path=folders)
    except Exception as error:
        place = place_of_error(error, course)
        raise UserError(f"cannot read {place}: {type(error).__name__}: {error}") from error
    return reader.config


def place_of_error(error: Exception, course: Path) -> str:
    """Return the settings' file in which an error happened, with the line where it has one."""
    settings_folder = course.resolve()
    lines = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        lines.append((error.filename or "", error.lineno))
    for filename, line in reversed(lines):
        if Path(filename).resolve().parent == settings_folder:
            return f"{course / Path(filename).name}, line {line}"
    return str(course / "nbgrader_config.py")


def follow_on_earns(course: Path) -> bool:
    """True if an answer earns points that is right given right ones in place of those it calls."""
    require_nbgrader()
    return bool(read_settings(course).JudgeExporter.get("follow_on", True))


@contextmanager
def course_modules_importable(course: Path) -> Iterator[None]:
    """Have the course's own modules importable in the block, as nbgrader does for plugins."""
    sys.path.insert(0, str(course.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(course.resolve()))
