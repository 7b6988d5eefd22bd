"""Whose the files of a download are: each file with its owner, or left with a reason."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from attncourse.grading.collect import gradescope
from attncourse.grading.collect.drops import (
    NO_ZIP,
    ArchiveRoom,
    Item,
    archive_items,
    download_items,
)
from attncourse.grading.collect.owners import (
    ROSTER_HINT,
    ROSTER_WITH_NUMBERS_HINT,
    Slipped,
    TestStudent,
    owners,
    why_nobodys,
)
from attncourse.grading.collect.roster import Class
from attncourse.grading.collect.schemes import (
    MAX_CHARACTERS_OF_PATH,
    MAX_FOLDERS_OF_PATH,
    OwnerClaim,
    claim,
    likeliest_scheme,
)
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.harmless import one_line
from attncourse.grading.slips import Slip

# Which go with a submission and are none.
FILES_BESIDE_WORK = (gradescope.METADATA, "timestamp.txt")


class Owned(NamedTuple):
    """A file and whose it is, in the ``drop``-th download.

    ``sure``: by more than a name. ``packed``: in an archive in it, which anybody may have made.
    ``group`` is the name of a group that has handed it in, each of whose members owns it.
    """

    student: str
    claim: OwnerClaim
    item: Item
    drop: int
    sure: bool
    packed: bool
    group: str = ""


class Left(NamedTuple):
    """A file that is nobody's, and why."""

    path: str
    reason: str


class Origin(NamedTuple):
    """Where files come from: the ``drop``-th download, or an archive so deep in it.

    ``around`` are the names of the download and of the archives, ``room`` what these may still
    hold, ``likely`` the platform, ``exports`` what Gradescope says of the files.
    """

    drop: int
    around: tuple[str, ...]
    room: ArchiveRoom
    likely: str = ""
    exports: Mapping[PurePosixPath, gradescope.Export] = MappingProxyType({})
    depth: int = 0


@dataclass
class Sorting:
    """The files of all downloads, by student; ``left`` are those that are nobody's.

    ``remarks`` collect notes on skipped files that nobody has to act on.
    """

    name: str
    people: Class
    left: list[Left]
    remarks: list[str]
    owned: dict[str, list[Owned]] = field(default_factory=dict)
    slips: list[Slip] = field(default_factory=list)

    def add(self, path: Path, drop: int, stack: ExitStack) -> None:
        """Sort one download, the ``drop``-th that was named."""
        items = list(download_items(path, self.name, stack, self.leave))
        source = Origin(drop, (path.name.partition(".")[0],), ArchiveRoom())
        exports = gradescope.read_exports(items, lambda p: self._has_owner(p, source), self.leave)
        self._sort(items, source._replace(exports=exports))

    def leave(self, path: str, reason: str) -> None:
        """Note a file that is nobody's, with the reason."""
        self.left.append(Left(path, reason))

    def _sort(self, items: list[Item], source: Origin) -> None:
        source = source._replace(likely=likeliest_scheme((i.names[0] for i in items), self.name))
        for item in items:
            try:
                if (
                    len(str(item.names[0])) > MAX_CHARACTERS_OF_PATH
                    or len(item.names[0].parts) > MAX_FOLDERS_OF_PATH
                ):
                    raise Ungraded("its path is longer than any platform's: rename it")
                self._place(item, source)
            except TestStudent as problem:
                self.remarks.append(f"{item.shown}: {problem}")
            except Slipped as problem:
                self.slips.append(problem.slip._replace(place=one_line(item.shown, 120)))
            except Ungraded as problem:
                self.leave(item.shown, str(problem))

    def _place(self, item: Item, source: Origin) -> None:
        """Find a file's owners; of an archive that nobody claims, those of the files in it.

        What a platform's name claims is never opened for the names in it, whoever is meant.
        """
        first, doubts, claims = item.names[0], [], []
        said = gradescope.gradescope_claims(first, source.exports)
        for path in item.names:
            claims = self._claims(path, source) if said is None else said
            claims_and_owners = []
            for owner_claim in claims:
                try:
                    claims_and_owners += [
                        (owner_claim, *of) for of in owners(owner_claim, self.people)
                    ]
                except Ungraded as doubt:
                    doubts.append(doubt)
            for owner_claim, student, sure in claims_and_owners:
                group = self.people.group(owner_claim.names)[0]
                owned = Owned(
                    student, owner_claim, item, source.drop, sure, source.depth > 0, group
                )
                self.owned.setdefault(student, []).append(owned)
            if claims_and_owners:
                return
        if doubts:
            raise doubts[0]
        files, loose = (
            None,
            said is None and not any(owner_claim.platform for owner_claim in claims),
        )
        if loose and first.suffix.casefold() == ".zip":
            files = archive_items(item, self.name, source.depth, source.room, self.leave)
        if files is not None:
            around = (*source.around, first.stem)
            self._sort(list(files), source._replace(around=around, depth=source.depth + 1))
        elif first.name not in FILES_BESIDE_WORK:
            named = not (source.depth or first.parts[1:]) and first.stem.startswith(source.around)
            no_archive = named and first.suffix.casefold() != ".ipynb"  # that could be opened
            raise Ungraded(why_nobodys(claims, self.people) + NO_ZIP * no_archive)

    def _claims(self, path: PurePosixPath, source: Origin) -> list[OwnerClaim]:
        path_claim = claim(path, self.name, source.likely, source.around)
        return [path_claim] if path_claim else []

    def _has_owner(self, path: PurePosixPath, source: Origin) -> bool:
        """True if a path belongs to a student: its metadata file is then theirs, no export's."""
        claims = self._claims(path, source)
        return any(
            owner_claim.platform or any(map(self.people.meant, owner_claim.names))
            for owner_claim in claims
        )

    def part_twins(self) -> None:
        """Leave files that only a name gives to somebody, where two bear that name.

        A platform has one number for one person, so two numbers are two people.
        """
        way_out = ROSTER_WITH_NUMBERS_HINT if self.people.closed else ROSTER_HINT
        for student, files in list(self.owned.items()):
            for platform in ("moodle", "canvas"):
                theirs = [o for o in files if o.claim.platform == platform and not o.group]
                numbers = {o.claim.number for o in theirs}
                sure = {o.claim.number for o in files if o.sure}
                if len(numbers) < 2:
                    continue
                for owned in [o for o in theirs if o.claim.number in numbers - sure]:
                    files.remove(owned)
                    name = one_line(owned.claim.names[0], 40)
                    self.leave(owned.item.shown, f"{len(numbers)} are called {name}: {way_out}")
            if not files:
                del self.owned[student]
