"""Gradescope's "Export Submissions": a folder for each, and one file that says whose they are.

``submission_metadata.yml`` holds, for each folder, ``:submitters:`` with ``:name:``, ``:sid:`` and
``:email:``, and ``:created_at:``. Its form is not documented; otter-grader reads it the same way
(https://github.com/ucbds-infra/otter-grader).
"""

from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from attncourse.grading.collect.drops import Item
from attncourse.grading.collect.schemes import Claim
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line

METADATA = "submission_metadata.yml"
Submissions = dict[PurePosixPath, dict[str, Any]]


def submissions(found: list[Item]) -> Submissions:
    """What Gradescope says of each submission among these files, by its folder."""
    read: Submissions = {}
    for item in found:
        if item.names[0].name == METADATA:
            read |= {item.names[0].parent / folder: said for folder, said in parsed(item).items()}
    return read


def parsed(item: Item) -> dict[str, dict[str, Any]]:
    import yaml

    try:
        content = yaml.safe_load(item.read())
        return {str(folder): said for folder, said in content.items() if isinstance(said, dict)}
    except (yaml.YAMLError, AttributeError, ValueError, Ungraded, RecursionError) as error:
        reason = one_line(str(error), 80)
        raise UserError(f"{item.shown} cannot be read: {reason}: export it again") from None


def claims(path: PurePosixPath, read: Submissions) -> list[Claim]:
    """Whose the file at this path is: one submitter's, or all of a group's."""
    folder = next((place for place in path.parents if place in read), None)
    people = read[folder].get(":submitters") if folder is not None else None
    found = []
    for person in people if isinstance(people, list) else ():
        names = [str(person.get(key) or "") for key in (":email", ":sid", ":name")]
        if names := [name for name in names if name]:
            at, file = time_of(read[folder]), path.relative_to(folder)
            found.append(Claim("gradescope", tuple(names), file, folder.name, at=at))
    return found


def time_of(said: dict[str, Any]) -> str:
    at = said.get(":created_at") or ""
    return f"{at:%Y-%m-%d %H:%M:%S %z}".strip() if isinstance(at, datetime) else str(at)
