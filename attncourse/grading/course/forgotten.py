"""The people who were forgotten, so that nothing enters them again: hashes, and no words."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from attncourse.grading.files import replace_file
from attncourse.grading.names import same_id, spellings
from attncourse.grading.spreadsheet import csv_table, records_in

FORGOTTEN_FILE, FORGOTTEN_HEAD = "forgotten.csv", ("person", "id_or_name")


class Forgotten:
    """Hashes of the ids, addresses, numbers and names of forgotten people, and whose each is."""

    def __init__(self, course: Path) -> None:
        """Read who was forgotten in a course; nobody if there is no such file."""
        self._path = course / FORGOTTEN_FILE
        rows = records_in(self._path)[1]
        self._owners = {
            row.get(FORGOTTEN_HEAD[1], ""): row.get(FORGOTTEN_HEAD[0], "") for row in rows
        }

    def has_id(self, *ids: str) -> bool:
        """True if one of these ids, addresses or numbers is a forgotten person's."""
        return any(
            hash_of_name("id", same_id(identifier)) in self._owners
            for identifier in ids
            if identifier
        )

    def has_name(self, *names: str) -> bool:
        """True if one of these names is a forgotten person's."""
        all_spellings = (spelling for name in names for spelling in spellings(name))
        return any(hash_of_name("name", spelling) in self._owners for spelling in all_spellings)

    def add(self, student: str, ids: Iterable[str], names: Iterable[str]) -> None:
        """Note that a student is forgotten, who is known by these ids and names, too."""
        owner = hash_of_name("person", student)
        for identifier in {student, *ids} - {""}:
            self._owners[hash_of_name("id", same_id(identifier))] = owner
        for spelling in (spelling for name in names for spelling in spellings(name)):
            self._owners[hash_of_name("name", spelling)] = owner
        self._write()

    def take_back(self, student: str) -> bool:
        """Remove a student from the forgotten; return True if they were among them."""
        before, owner = len(self._owners), hash_of_name("person", student)
        self._owners = {mark: of for mark, of in self._owners.items() if of != owner}
        if len(self._owners) < before:
            self._write()
        return len(self._owners) < before

    def _write(self) -> None:
        """Write the hashes to their file."""
        rows = sorted((owner, mark) for mark, owner in self._owners.items())
        replace_file(self._path, csv_table([FORGOTTEN_HEAD, *rows]))


def hash_of_name(kind: str, text: str) -> str:
    """Return the hash of an id or a name, which ``kind`` says."""
    hashed_text = f"attncourse, a forgotten {kind}: {text}"
    return hashlib.sha256(hashed_text.encode("utf-8", "backslashreplace")).hexdigest()
