"""Results that take too long for a page, and pieces of real data, each with how it was made."""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def kept(name: str) -> dict[str, Any]:
    """Return the kept results of this name; under ``about`` date, versions, licence and command.

    Raises ``ValueError`` for a name that no file has.
    """
    folder = Path(__file__).parent
    names = sorted(path.stem for path in folder.glob("*.json"))
    if name not in names:
        raise ValueError(f"nothing is kept as {name!r}: expected one of {', '.join(names)}")
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
