"""What processes of ``forked_commands`` part from: imported once, left alone by the collector."""

import contextlib
import gc
import io
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import attncourse.grading

APART = ("judge.worker", "jail")  # lanes have them, and no command


def rehearse() -> None:
    """Does what commands do, for what is set up when it is done for the first time."""
    from attncourse.grading.cli import main
    from attncourse.grading.judge.lanes import LANES
    from tests.helpers.small_course import NAME, make_course

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        make_course(Path(folder))
        sys.argv = ["attncourse", "release", NAME, "--course", folder]
        with contextlib.suppress(SystemExit):
            main()
    LANES.end_idle()  # else each command would find the same lane waiting


gc.disable()
for name in ("nbgrader.apps.api", "nbgrader.apps.nbgraderapp", "torch"):
    import_module(name)
for found in walk_packages(attncourse.grading.__path__, "attncourse.grading."):
    if not found.name.removeprefix("attncourse.grading.").startswith(APART):
        import_module(found.name)
rehearse()
gc.freeze()
gc.set_threshold(50_000)
gc.enable()
READY = True
