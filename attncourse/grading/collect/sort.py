"""Sorting the files of downloads by their owners; a file of nobody is left with a reason."""

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
    owners_claimed,
    why_nobodys,
)
from attncourse.grading.collect.roster import Class
from attncourse.grading.collect.schemes import (
    MAX_CHARACTERS_OF_PATH,
    MAX_FOLDERS_OF_PATH,
    OwnerClaim,
    claim_of_path,
    likeliest_scheme,
)
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.harmless import one_line
from attncourse.grading.slips import Slip

# Which go with a submission and are none.
FILES_BESIDE_WORK = (gradescope.METADATA, "timestamp.txt")


class Owned(NamedTuple):
    """A file with its owner; it is from download number ``drop``.

    ``sure``: by more than a name. ``packed``: in an archive in the download, which anybody may have
    made. ``group`` is the name of a group that has handed it in, each of whose members owns it.
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
    """Where files come from: download number ``drop``, or an archive in it at some ``depth``.

    ``around`` are the names of the download and of the archives, ``room`` how much these may still
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
    """The files of all downloads, ``owned`` by student; ``left`` are those of nobody.

    ``remarks`` collect notes on skipped files that nobody has to act on.
    """

    name: str
    people: Class
    left: list[Left]
    remarks: list[str]
    owned: dict[str, list[Owned]] = field(default_factory=dict)
    slips: list[Slip] = field(default_factory=list)

    def add_download(self, path: Path, drop: int, stack: ExitStack) -> None:
        """Sort the files of one download, number ``drop`` of those that were named."""
        items = list(download_items(path, self.name, stack, self.leave))
        source = Origin(drop, (path.name.partition(".")[0],), ArchiveRoom())
        exports = gradescope.read_exports(items, lambda p: self._has_owner(p, source), self.leave)
        self._sort_files(items, source._replace(exports=exports))

    def leave(self, path: str, reason: str) -> None:
        """Note that a file is nobody's, and the reason."""
        self.left.append(Left(path, reason))

    def _sort_files(self, items: list[Item], source: Origin) -> None:
        """Find the owners of files from one origin; note those of nobody, and slips."""
        source = source._replace(likely=likeliest_scheme((i.names[0] for i in items), self.name))
        for item in items:
            try:
                if (
                    len(str(item.names[0])) > MAX_CHARACTERS_OF_PATH
                    or len(item.names[0].parts) > MAX_FOLDERS_OF_PATH
                ):
                    raise Ungraded("its path is longer than any platform's: rename it")
                self._find_owners(item, source)
            except TestStudent as problem:
                self.remarks.append(f"{item.shown}: {problem}")
            except Slipped as problem:
                self.slips.append(problem.slip._replace(place=one_line(item.shown, 120)))
            except Ungraded as problem:
                self.leave(item.shown, str(problem))

    def _find_owners(self, item: Item, source: Origin) -> None:
        """Enter a file with its owners; of an archive that nobody claims, the files in it.

        Raises ``Ungraded`` for a file of nobody. An archive whose name a platform wrote is never
        opened to look for names in it, whoever is meant.
        """
        first, doubts, claims = item.names[0], [], []
        export_claims = gradescope.gradescope_claims(first, source.exports)
        for path in item.names:
            claims = self._claims_of(path, source) if export_claims is None else export_claims
            claims_and_owners = []
            for owner_claim in claims:
                try:
                    claims_and_owners += [
                        (owner_claim, *of) for of in owners_claimed(owner_claim, self.people)
                    ]
                except Ungraded as doubt:
                    doubts.append(doubt)
            for owner_claim, student, sure in claims_and_owners:
                group = self.people.group_named(owner_claim.names)[0]
                owned = Owned(
                    student, owner_claim, item, source.drop, sure, source.depth > 0, group
                )
                self.owned.setdefault(student, []).append(owned)
            if claims_and_owners:
                return
        if doubts:
            raise doubts[0]
        files = None
        is_platforms = export_claims is not None or any(
            owner_claim.platform for owner_claim in claims
        )
        if not is_platforms and first.suffix.casefold() == ".zip":
            files = archive_items(item, self.name, source.depth, source.room, self.leave)
        if files is not None:
            around = (*source.around, first.stem)
            self._sort_files(list(files), source._replace(around=around, depth=source.depth + 1))
        elif first.name not in FILES_BESIDE_WORK:
            reason = why_nobodys(claims, self.people)
            # A single file that was named itself, where a download's archive was expected.
            is_named = not (source.depth or first.parts[1:]) and first.stem.startswith(
                source.around
            )
            if is_named and first.suffix.casefold() != ".ipynb":
                reason += NO_ZIP
            raise Ungraded(reason)

    def _claims_of(self, path: PurePosixPath, source: Origin) -> list[OwnerClaim]:
        """Return the claim of a path as a list, empty where the path names nobody."""
        path_claim = claim_of_path(path, self.name, source.likely, source.around)
        return [path_claim] if path_claim else []

    def _has_owner(self, path: PurePosixPath, source: Origin) -> bool:
        """True if a path is a student's, so that a metadata file there is no export's."""
        claims = self._claims_of(path, source)
        return any(
            owner_claim.platform or any(map(self.people.ids_meant_by, owner_claim.names))
            for owner_claim in claims
        )

    def leave_namesakes(self) -> None:
        """Leave files that only a name gives to a student, if two people have that name.

        A platform has one number for one person, so two numbers are two people.
        """
        way_out = ROSTER_WITH_NUMBERS_HINT if self.people.closed else ROSTER_HINT
        for student, files in list(self.owned.items()):
            for platform in ("moodle", "canvas"):
                of_platform = [o for o in files if o.claim.platform == platform and not o.group]
                numbers = {o.claim.number for o in of_platform}
                sure = {o.claim.number for o in files if o.sure}
                if len(numbers) < 2:
                    continue
                for owned in [o for o in of_platform if o.claim.number in numbers - sure]:
                    files.remove(owned)
                    name = one_line(owned.claim.names[0], 40)
                    self.leave(owned.item.shown, f"{len(numbers)} are called {name}: {way_out}")
            if not files:
                del self.owned[student]
