"""Gradescope's "Export Submissions": a folder for each, and one file that says whose they are.

``submission_metadata.yml`` holds, for each folder beside it, ``:submitters:`` with ``:name:``,
``:sid:`` and ``:email:``, and ``:created_at:``. Its form is not documented; otter-grader reads it
the same way (https://github.com/ucbds-infra/otter-grader).

A file of that name which somebody handed in is a file like others: only one that lies in nobody's
folder speaks for others, and of nothing but the folders beside it. Where it speaks, no name does.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from attncourse.grading.collect.drops import Item, Leave
from attncourse.grading.collect.schemes import OwnerClaim
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.harmless import one_line

METADATA = "submission_metadata.yml"
MAX_BYTES_OF_METADATA, MAX_LEVELS_OF_METADATA = 20_000_000, 50  # bytes and levels of what it says
Export = dict[str, dict[str, Any]]  # what is said of each submission, by its folder's name
Exports = Mapping[PurePosixPath, Export]  # by the folder that the file is in


def read_exports(
    items: Iterable[Item], is_somebodys: Callable[[PurePosixPath], bool], leave: Leave
) -> Exports:
    """Return Gradescope's metadata by the folder that each file of it lies in.

    A metadata file that is a student's own work is passed over; ``leave`` hears of unreadable ones.
    """
    read: dict[PurePosixPath, Export] = {}
    for item in sorted(items, key=lambda item: len(item.names[0].parts)):
        path = item.names[0]
        if path.name == METADATA and not export_of(path.parent, read) and not is_somebodys(path):
            read[path.parent] = {}
            try:
                read[path.parent] = parse_metadata(item)
            except Ungraded as problem:
                leave(item.shown, str(problem))
    return read


def parse_metadata(item: Item) -> Export:
    """Return the submissions in a metadata file of Gradescope's; raise ``Ungraded`` for another."""
    data = item.read()
    if len(data) > MAX_BYTES_OF_METADATA:
        raise Ungraded(
            f"over {MAX_BYTES_OF_METADATA // 1_000_000} MB: is it what Gradescope exports?"
        )
    try:
        content = load_metadata(data)
    except Exception as error:  # whatever its constructors make of it
        reason = one_line(str(error), 80)
        raise Ungraded(f"cannot be read ({reason}): export the submissions again") from None
    if not isinstance(content, dict):
        raise Ungraded("expected a table of submissions: export them again")
    return {
        str(folder): metadata for folder, metadata in content.items() if isinstance(metadata, dict)
    }


def load_metadata(data: bytes) -> object:
    """Return the data in a YAML file; raise an error if it is none, or nested too deep."""
    import yaml

    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    for event in yaml.parse(data, loader):  # its objects are made by calls within calls, in C
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_LEVELS_OF_METADATA:
            raise ValueError("lists in lists in lists")
    return yaml.load(data, loader)


def export_of(path: PurePosixPath, read: Exports) -> PurePosixPath | None:
    """Return the folder of the export that a path is in; None if it is in none."""
    return next((place for place in (path, *path.parents) if place in read), None)


def gradescope_claims(path: PurePosixPath, read: Exports) -> list[OwnerClaim] | None:
    """Return the claims of a file's submitters, as its export has them; None outside of exports."""
    place = export_of(path.parent, read)
    if place is None:
        return None
    folder, *rest = path.relative_to(place).parts
    metadata = read[place].get(folder, {}) if rest else {}
    people, claims, file = metadata.get(":submitters"), [], PurePosixPath(*rest)
    created = text_under_key(metadata, ":created_at")
    if isinstance(people, list):
        for person in people:
            email, number, name = (
                text_under_key(person, key) for key in (":email", ":sid", ":name")
            )
            ids = tuple(filter(None, (email, number)))
            if names := (*ids, *filter(None, [name])):
                claims.append(OwnerClaim("gradescope", names, file, folder, ids=ids, at=created))
    return claims


def text_under_key(metadata: object, key: str) -> str:
    """Return the text under a key of what may be a dict; "" where there is none."""
    value = metadata.get(key) if isinstance(metadata, dict) else None
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S %z}".strip()
    return str(value).strip() if isinstance(value, str | int) else ""
