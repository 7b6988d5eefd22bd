"""Unusual imports: modules that a student's code imports and that few notebooks do."""

import ast
import re
from collections.abc import Iterable

from attncourse.grading.submission.source import file_written, python_alone
from attncourse.grading.submission.syntax import parse_or_none, remembered_by_class

PACKAGES = """
    attncourse numpy torch torchvision scipy matplotlib mpl_toolkits seaborn plotly pandas sklearn
    sympy networkx einops jaxtyping tqdm rich tabulate PIL torchinfo
    IPython ipywidgets google pytest hypothesis psutil requests nltk
"""
STANDARD = """
    __future__ abc argparse array ast asyncio base64 bisect builtins cProfile calendar cmath
    collections concurrent contextlib copy csv dataclasses datetime decimal difflib doctest enum
    fractions functools gc getpass glob gzip hashlib heapq html importlib inspect io itertools
    json keyword linecache locale logging math multiprocessing numbers operator os pathlib
    pickle platform pprint pstats queue random re reprlib secrets shutil statistics string
    struct subprocess sys tempfile textwrap threading time timeit traceback tracemalloc types
    typing typing_extensions unicodedata unittest urllib uuid warnings weakref zipfile zoneinfo
"""
PRIVATE_NAME = re.compile(r"\._(?!_)")  # part of a package
ORDINARY_MODULES = frozenset((PACKAGES + STANDARD).split())


def unusual_imports(sources: Iterable[str], given_sources: Iterable[str]) -> list[list[str]]:
    """Return, for each of a student's cells, the modules it imports that few notebooks do.

    Those that the ``given_sources`` of the assignment import are left out, and the student's own
    files.
    """
    sources = list(sources)
    files = {p.removesuffix(".py").split("/")[0] for p, _ in map(file_written, sources) if p}
    usual = (
        ORDINARY_MODULES
        | {name.split(".")[0] for source in given_sources for name in imported_names(source)}
        | files
    )
    imports_by_cell = (dict.fromkeys(imported_names(source)) for source in sources)
    return [
        [name for name in names if PRIVATE_NAME.search(name) or name.split(".")[0] not in usual]
        for names in imports_by_cell
    ]


@remembered_by_class
def imported_names(source: str) -> tuple[str, ...]:
    """Return the full names that a cell imports; for a cell that writes a file, the file's."""
    tree, names = parse_or_none(python_alone(file_written(source)[1] or source)), []
    if tree:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names += [item.name for item in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                private = [item.name for item in node.names if item.name.startswith("_")]
                names += [*(f"{node.module}.{name}" for name in private), node.module]
    return tuple(names)
