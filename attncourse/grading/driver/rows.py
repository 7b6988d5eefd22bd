"""Rows of one of nbgrader's tables, many at a time: read them, say what they should hold, write."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

AT_ONCE = 1000  # values in one query
Row = dict[str, Any]


class Rows:
    """The rows of a table that a batch is about, by the columns of ``key``.

    ``found`` holds them, those that are there and those that will be; each has ``key``,
    ``columns`` and, where the table has one of its own, an ``id``.
    """

    def __init__(
        self, db: "Session", model: Any, key: tuple[str, ...], columns: tuple[str, ...] = ()
    ) -> None:
        self._db, self._model, self._key = db, model, key
        self._columns = tuple(dict.fromkeys(("id", *key, *columns)))
        self._new: list[Row] = []
        self._changed: list[Row] = []
        self.found: dict[tuple, Row] = {}

    def read(self, values: Sequence[str]) -> None:
        """Reads the rows whose last column of the key has one of these values."""
        from sqlalchemy import select

        chosen = [getattr(self._model, name) for name in self._columns]
        column = getattr(self._model, self._key[-1])
        for start in range(0, len(values), AT_ONCE):
            query = select(*chosen).where(column.in_(values[start : start + AT_ONCE]))
            for row in self._db.execute(query).mappings():
                self.found[self._key_of(row)] = dict(row)

    def put(self, row: Row) -> Row:
        """Notes what a row should hold, and returns all of it. What it does not name, stays."""
        key = self._key_of(row)
        old = self.found.get(key)
        if old is None:
            empty = dict.fromkeys(self._columns) | {"id": uuid4().hex}
            self.found[key] = empty | row
            self._new.append({"id": self.found[key]["id"], **row})
        elif any(old[name] != value for name, value in row.items()):
            self._changed.append({**row, "id": old["id"]})
            self.found[key] = old | row
        return self.found[key]

    def write(self) -> None:
        """Sends what is new or different to the database, without a commit."""
        from sqlalchemy import insert, update

        if self._new:
            self._db.execute(insert(self._model), self._new)
        if self._changed:
            self._db.execute(update(self._model), self._changed)
        self._new, self._changed = [], []

    def _key_of(self, row: Any) -> tuple:
        return tuple(row[name] for name in self._key)
