"""Whom a claim means: one of the class, a group of it, somebody new, or nobody, with the reason.

All that a path says of a person has to agree: a file called after another is given to neither.
"""

from collections.abc import Iterable

from attncourse.grading.collect.roster import Class, why_no_folder
from attncourse.grading.collect.schemes import OwnerClaim
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.harmless import one_line
from attncourse.grading.names import file_name, is_test_student, name_parts
from attncourse.grading.slips import Slip, settle_owner

ROSTER_HINT = "name the class with --roster"
ROSTER_WITH_NUMBERS_HINT = (
    "one more --roster, Moodle's grading worksheet or Canvas' gradebook, tells them apart"
)
SPELLING_HINT = "If so, write this name into a column name of the roster"
NEAR_NAME_HINT = (
    "Name the class with --roster: if so, with this name in a column name; if not, with a row more"
)
SHOW_NAMES_HINT = "switch anonymous grading off on the platform, and download again"
TEST_STUDENT_REASON = "Canvas' test student, who is nobody of the class"
ANONYMOUS = {  # as Moodle calls people in some languages, and Canvas
    *("participant", "teilnehmer", "teilnehmerin", "participante", "partecipante", "deelnemer"),
    *("deltager", "deltagare", "uczestnik", "osallistuja", "anon", "anonymous", "lateanon"),
}


class Slipped(Ungraded):
    """A file whose path has the number of one person and the name of another."""

    def __init__(self, slip: Slip) -> None:
        """Keep the slip, which stops the whole command."""
        super().__init__(str(slip))
        self.slip = slip


class TestStudent(Ungraded):
    """A submission of the platform's test student, which is not graded."""


def owners(claim: OwnerClaim, people: Class) -> list[tuple[str, bool]]:
    """Return the students who are meant, each with whether that is by more than a name.

    Several are a group. Raises ``Ungraded`` where nobody knows which one is meant. Without a
    roster, what a platform calls somebody makes a student.
    """
    claim = claim._replace(names=tuple(map(people.without_group_name, claim.names)))
    if members := people.group(claim.names)[1]:
        return [(student, False) for student in sorted(members)]
    owner_id, sure = owner(claim, people)
    return [(owner_id, sure)] if owner_id else []


def owner(claim: OwnerClaim, people: Class) -> tuple[str, bool]:
    """Return the student who is meant, or "", and whether that is by more than a name."""
    if claim.platform == "canvas" and is_test_student(claim.names[0]):
        raise TestStudent(TEST_STUDENT_REASON)
    sure = False
    if claim.number or claim.ids:  # a name beside them is what a person is called, and no id
        where = claim.platform if claim.number else ""
        candidates = people.by_key([claim.number] if claim.number else claim.ids, where)
        sure = len(candidates) == 1
        names = [name for name in claim.names if name not in claim.ids]
        named = people.named(names)
        settled = settle_owner(candidates, named, people.trust)
        if settled is None:
            raise Slipped(slip_of(claim, names[0], candidates, named, people))
        sure &= settled <= candidates
        candidates = settled or people.by_name(names)
        if rivals := people.by_key(claim.rivals, where) - candidates:
            raise names_several(rivals | (candidates or {claim.names[0]}))
        said = [candidates]
    else:
        said = [people.meant(name) for name in claim.names]
    candidates = agreed_owner([*said, *map(people.meant, claim.outer)])
    if not candidates and (below := agreed_owner(map(people.meant, claim.inner))):
        candidates = agreed_owner([below] if people.closed else [below, {claim.names[0]}])
    if len(candidates) > 1:
        raise may_be_several(claim, candidates, people)
    return (candidates.pop(), sure) if candidates else (newcomer(claim, people), False)


def slip_of(
    claim: OwnerClaim, name: str, numbered: set[str], named: set[str], people: Class
) -> Slip:
    """Return what there is to say where a path has one person's number and another's name."""
    number = one_line(claim.number or claim.ids[0], 60)
    return Slip(
        str(claim.file), number, one_line(name, 60), people.listed(numbered), people.listed(named)
    )


def agreed_owner(said: Iterable[set[str]]) -> set[str]:
    """Return the students that all sets which name anybody share; raise ``Ungraded`` where none."""
    sets = [students for students in said if students]
    if sets and not set.intersection(*sets):
        raise names_several(set.union(*sets))
    return set.intersection(*sets) if sets else set()


def newcomer(claim: OwnerClaim, people: Class) -> str:
    """Return the id of somebody whom nobody knows yet and a platform names; else ""."""
    name = claim.names[0]
    if people.closed or not claim.platform or is_anonymous(name):
        return ""
    is_id = claim.platform == "nbgrader" or name in claim.ids
    made = name if is_id and not why_no_folder(name) else file_name(name)
    if made in people.members:  # of whom another name is known
        raise may_be_several(claim, {made}, people)
    # Where the class's names are known, a name like one of them is hardly somebody new.
    if near := [student for student in people.nearest(name) if people.members[student].called]:
        raise Ungraded(
            f"nobody is known as {claim_in_words(claim)}; is it {owners_in_words(near, 'or')}? "
            f"{NEAR_NAME_HINT}"
        )
    return made


def is_anonymous(name: str) -> bool:
    """True if a name is one that a platform puts in the place of a name."""
    return "".join(name_parts(name)) in ANONYMOUS


def claim_in_words(claim: OwnerClaim) -> str:
    """Return the name that a path claims, with the number, as a message shows it."""
    return one_line(claim.names[0], 40) + (f" ({claim.number})" if claim.number else "")


def may_be_several(claim: OwnerClaim, students: set[str], people: Class) -> Ungraded:
    """Return the reason to leave a file that may be several people's."""
    way_out = ROSTER_WITH_NUMBERS_HINT if people.closed else ROSTER_HINT
    return Ungraded(f"{claim_in_words(claim)} may be {owners_in_words(students, 'or')}: {way_out}")


def names_several(students: set[str]) -> Ungraded:
    """Return the reason to leave a file whose path names several people."""
    return Ungraded(
        f"its path names {owners_in_words(students, 'and')}: call it after its owner alone"
    )


def owners_in_words(students: Iterable[str], word: str) -> str:
    """Return the ids of people in a line, the first four of them."""
    return f" {word} ".join(one_line(student_id, 40) for student_id in sorted(students)[:4])


def why_nobodys(claims: list[OwnerClaim], people: Class) -> str:
    """Return why a file with these claims is nobody's."""
    if not claims:
        return "its path names nobody"
    name, called = claims[0].names[0], claim_in_words(claims[0])
    if is_anonymous(name):
        return f"handed in anonymously: {SHOW_NAMES_HINT}"
    near = people.nearest(name)
    hint = f"; is it {owners_in_words(near, 'or')}?" if near else ""
    if not people.closed:
        return f"nobody is known as {called}{hint or f': {ROSTER_HINT}'}"
    way_out = f" {SPELLING_HINT}" if near else ""
    if not claims[0].platform:
        return f"nobody on the roster is called {called}{hint}{way_out}"
    group = "" if near else "; if it is a group, name its members in groups.csv"
    return f"{called} is not on the roster{hint}{way_out}{group}"
