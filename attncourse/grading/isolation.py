"""Isolation of the demo, the book's build and tests from what a user has set up otherwise."""

import os
import re
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

# Gradebooks (ours, libpq's PGHOST and its like), courses, services and start-up files. What says
# where packages, the model and caches are (PIP_*, ATTNCOURSE_CACHE, XDG_*) stays.
PERSONAL_VARIABLES = re.compile(
    r"ATTNCOURSE_DB|(JUPYTER|JPY|NBGRADER|IPYTHON|DASK)\w*|PG[A-Z]+|MPLBACKEND|PYTHONSTARTUP"
)
# Jupyter, nbgrader among its programs, then reads no configuration of a user or of the machine.
NO_CONFIGURATION = "JUPYTER_NO_CONFIG"


def isolate(environment: MutableMapping[str, str], folder: Path | None = None) -> None:
    """Remove variables that point to a user's settings, courses and gradebooks.

    With ``folder``, IPython, Jupyter and Dask keep their files there, and not in the user's home.
    """
    for name in [name for name in environment if PERSONAL_VARIABLES.fullmatch(name)]:
        del environment[name]
    environment.update({NO_CONFIGURATION: "1", "MATPLOTLIBRC": os.devnull})
    if folder is not None:
        variables = ("IPYTHONDIR", "JUPYTER_DATA_DIR", "DASK_CONFIG")
        environment.update(dict.fromkeys(variables, str(folder)))


@contextmanager
def isolated_environment() -> Iterator[None]:
    """Isolate this process's environment in the block."""
    before = dict(os.environ)
    isolate(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
