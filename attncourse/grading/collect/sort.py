"""Whose the files of a download are: each file with its owner, or left with a reason."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from attncourse.grading.collect import gradescope
from attncourse.grading.collect.drops import Item, inside, items
from attncourse.grading.collect.roster import Class, squeezed, unfit
from attncourse.grading.collect.schemes import Claim, claim, plain
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.course.handed_in import ZIP
from attncourse.grading.harmless import one_line

WAY_OUT = "name the class with --roster"
ANONYMOUS = ("participant", "anon", "lateanon")
BESIDE = (gradescope.METADATA, "timestamp.txt")  # which go with a submission and are none


class Owned(NamedTuple):
    """A file and whose it is, in the ``drop``-th download. ``sure``: by more than a name."""

    student: str
    claim: Claim
    item: Item
    drop: int
    sure: bool


class Left(NamedTuple):
    """A file that is nobody's, and why."""

    path: str
    reason: str


@dataclass
class Sorting:
    """The files of all downloads, by student, and those that are nobody's."""

    name: str
    people: Class
    owned: dict[str, list[Owned]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)

    def add(self, path: Path, drop: int, stack: ExitStack) -> None:
        """Sorts one download, the ``drop``-th that was named."""
        found = list(items(path, self.name, stack, self.leave))
        read, stem = gradescope.submissions(found), path.name.partition(".")[0]
        for item in found:
            self._sort(item, drop, read, stem)

    def leave(self, path: str, reason: str) -> None:
        self.left.append(Left(path, reason))

    def _sort(
        self, item: Item, drop: int, read: gradescope.Submissions, stem: str, depth: int = 0
    ) -> None:
        """Finds a file's owners; of an archive that is nobody's, those of the files in it."""
        if item.names[0].name == gradescope.METADATA:
            return
        claims: list[Claim] = []
        for path in item.names:
            claims = gradescope.claims(path, read) or self._claims(path, stem)
            owners = [(one, *self._owner(one)) for one in claims]
            for one, student, sure in owners:
                if student:
                    owned = Owned(student, one, item, drop, sure)
                    self.owned.setdefault(student, []).append(owned)
            if any(student for _, student, _ in owners):
                return
        try:
            if item.names[0].suffix.casefold() == ".zip" and item.read().startswith(ZIP):
                for inner in inside(item, self.name, depth, self.leave):
                    self._sort(inner, drop, read, item.names[0].stem, depth + 1)
            elif item.names[0].name not in BESIDE:
                self.leave(item.shown, self._reason(claims))
        except Ungraded as problem:
            self.leave(item.shown, str(problem))

    def _claims(self, path: PurePosixPath, stem: str) -> list[Claim]:
        """The claim by a path, in which the download's own name may be a person's as well."""
        found = claim(path, self.name) or plain(PurePosixPath(stem, path), self.name)
        if found and not found.platform:
            found = found._replace(names=(*found.names, stem))
        return [found] if found else []

    def _owner(self, claim: Claim) -> tuple[str, bool]:
        """The student who is meant, or "", and whether that is sure.

        Where there is no roster, what a platform calls somebody makes a student.
        """
        named = claim.platform in ("moodle", "canvas")  # what they write is how a person is called
        keys = (claim.number,) if named else claim.names
        if claim.platform == "moodle":
            keys = (f"participant {claim.number}",)
        found = self.people.by_key(keys)
        sure = len(found) == 1
        found = found or self.people.by_name(claim.names)
        if len(found) == 1:
            return next(iter(found)), sure
        unknown = not found and not self.people.closed and claim.platform
        if not unknown or squeezed(claim.names[0]) in ANONYMOUS:
            return "", False
        name = claim.names[0]
        return folder_name(name) if named or unfit(name) else name, not named

    def part_twins(self) -> None:
        """Leaves files that only a name gives to somebody, where two bear that name.

        A platform has one number for one person, so two numbers are two people.
        """
        for student, files in list(self.owned.items()):
            for platform in ("moodle", "canvas"):
                numbers = {o.claim.number for o in files if o.claim.platform == platform}
                sure = {o.claim.number for o in files if o.sure}
                if len(numbers) < 2:
                    continue
                for owned in [o for o in files if o.claim.number in numbers - sure]:
                    files.remove(owned)
                    name = one_line(owned.claim.names[0], 40)
                    self.leave(owned.item.shown, f"{len(numbers)} are called {name}: {WAY_OUT}")
            if not files:
                del self.owned[student]

    def _reason(self, claims: list[Claim]) -> str:
        """Why a file is nobody's."""
        if not claims:
            return "its path names nobody"
        name, number = claims[0].names[0], claims[0].number
        shown = one_line(name, 40) + (f" ({number})" if number else "")
        if squeezed(name) in ANONYMOUS:
            return f"anonymous: {WAY_OUT}"
        if several := sorted(self.people.by_name(claims[0].names)):
            return f"{shown} may be {' or '.join(several)}: {WAY_OUT}"
        near = self.people.nearest(name)
        hint = f"; is it {near}?" if near else ""
        if not self.people.closed:
            return f"nobody is known as {shown}{hint or f': {WAY_OUT}'}"
        if not claims[0].platform:
            return f"nobody on the roster is called {shown}{hint}"
        return f"{shown} is not on the roster{hint}"


def folder_name(name: str) -> str:
    """A folder's name for somebody whom no roster names: *Ada Lovelace* is ``ada-lovelace``."""
    kept = "".join(c if c.isalnum() or c in "@.+_" else "-" for c in name.strip().lower())
    return "-".join(part for part in kept.strip(".").split("-") if part)[:100]
