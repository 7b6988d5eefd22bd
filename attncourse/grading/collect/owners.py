"""Whose a file is by its claim: one of the class, a group's, somebody new's, or nobody's.

All that a path says of a person has to agree: a file called after another is given to neither.
"""

from collections.abc import Iterable

from attncourse.grading.collect.roster import Class, why_no_folder
from attncourse.grading.collect.schemes import OwnerClaim
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.harmless import one_line
from attncourse.grading.names import folder_name_for, is_test_student, name_parts
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


def owners_claimed(claim: OwnerClaim, people: Class) -> list[tuple[str, bool]]:
    """Return the ids of those whom a claim means, each with whether more than a name says so.

    Several are a group. Raises ``Ungraded`` where nobody knows which one is meant. Without a
    roster, a claim by a platform's name makes a new student.
    """
    claim = claim._replace(names=tuple(map(people.without_group_name, claim.names)))
    if members := people.group_named(claim.names)[1]:
        return [(student, False) for student in sorted(members)]
    owner_id, sure = single_owner(claim, people)
    return [(owner_id, sure)] if owner_id else []


def single_owner(claim: OwnerClaim, people: Class) -> tuple[str, bool]:
    """Return the id of the one whom a claim means, or "", and whether more than a name says so.

    Raises ``Slipped`` for one person's number beside another's name, ``TestStudent`` for Canvas'
    own student, and ``Ungraded`` for several people.
    """
    if claim.platform == "canvas" and is_test_student(claim.names[0]):
        raise TestStudent(TEST_STUDENT_REASON)
    sure = False
    if claim.number or claim.ids:  # a name beside them is what a person is called, and no id
        where = claim.platform if claim.number else ""
        candidates = people.ids_by_key([claim.number] if claim.number else claim.ids, where)
        sure = len(candidates) == 1
        names = [name for name in claim.names if name not in claim.ids]
        with_that_name = people.ids_by_known_name(names)
        settled = settle_owner(candidates, with_that_name, people.trust)
        if settled is None:
            raise Slipped(slip_of(claim, names[0], candidates, with_that_name, people))
        sure &= settled <= candidates
        candidates = settled or people.ids_by_name(names)
        if rivals := people.ids_by_key(claim.rivals, where) - candidates:
            raise several_are_named(rivals | (candidates or {claim.names[0]}))
        candidate_sets = [candidates]
    else:
        candidate_sets = [people.ids_meant_by(name) for name in claim.names]
    candidates = students_in_common([*candidate_sets, *map(people.ids_meant_by, claim.outer)])
    if not candidates and (below := students_in_common(map(people.ids_meant_by, claim.inner))):
        candidates = students_in_common([below] if people.closed else [below, {claim.names[0]}])
    if len(candidates) > 1:
        raise several_may_own(claim, candidates, people)
    return (candidates.pop(), sure) if candidates else (new_student_id(claim, people), False)


def slip_of(
    claim: OwnerClaim, name: str, numbered: set[str], named: set[str], people: Class
) -> Slip:
    """Return the slip of a path that has one person's number and another's name."""
    number = one_line(claim.number or claim.ids[0], 60)
    return Slip(
        str(claim.file),
        number,
        one_line(name, 60),
        people.members_in_words(numbered),
        people.members_in_words(named),
    )


def students_in_common(candidate_sets: Iterable[set[str]]) -> set[str]:
    """Return the students who are in all of these sets, empty ones left out.

    Raises ``Ungraded`` if sets name somebody and nobody is in all of them.
    """
    sets = [students for students in candidate_sets if students]
    if sets and not set.intersection(*sets):
        raise several_are_named(set.union(*sets))
    return set.intersection(*sets) if sets else set()


def new_student_id(claim: OwnerClaim, people: Class) -> str:
    """Return an id for somebody new whom a platform names; "" with a roster, or without a name."""
    name = claim.names[0]
    if people.closed or not claim.platform or is_anonymous(name):
        return ""
    is_id = claim.platform == "nbgrader" or name in claim.ids
    student_id = name if is_id and not why_no_folder(name) else folder_name_for(name)
    if student_id in people.members:  # of whom another name is known
        raise several_may_own(claim, {student_id}, people)
    # Where the class's names are known, a name like one of them is hardly somebody new.
    if similar := [
        student
        for student in people.ids_with_similar_name(name)
        if people.members[student].full_names
    ]:
        raise Ungraded(
            f"nobody is known as {claim_in_words(claim)}; is it {owners_in_words(similar, 'or')}? "
            f"{NEAR_NAME_HINT}"
        )
    return student_id


def is_anonymous(name: str) -> bool:
    """True if a platform puts this name in the place of people's names."""
    return "".join(name_parts(name)) in ANONYMOUS


def claim_in_words(claim: OwnerClaim) -> str:
    """Return the name in a claim, with the platform's number, as messages show it."""
    return one_line(claim.names[0], 40) + (f" ({claim.number})" if claim.number else "")


def several_may_own(claim: OwnerClaim, students: set[str], people: Class) -> Ungraded:
    """Return the exception for a file that may be several people's, with what tells them apart."""
    way_out = ROSTER_WITH_NUMBERS_HINT if people.closed else ROSTER_HINT
    return Ungraded(f"{claim_in_words(claim)} may be {owners_in_words(students, 'or')}: {way_out}")


def several_are_named(students: set[str]) -> Ungraded:
    """Return the exception for a file whose path names several people."""
    return Ungraded(
        f"its path names {owners_in_words(students, 'and')}: call it after its owner alone"
    )


def owners_in_words(students: Iterable[str], word: str) -> str:
    """Return ids in a line, the first four of them, joined by ``word``."""
    return f" {word} ".join(one_line(student_id, 40) for student_id in sorted(students)[:4])


def why_nobodys(claims: list[OwnerClaim], people: Class) -> str:
    """Return why a file with these claims is nobody's, and what to do about it."""
    if not claims:
        return "its path names nobody"
    name, called = claims[0].names[0], claim_in_words(claims[0])
    if is_anonymous(name):
        return f"handed in anonymously: {SHOW_NAMES_HINT}"
    similar_ids = people.ids_with_similar_name(name)
    hint = f"; is it {owners_in_words(similar_ids, 'or')}?" if similar_ids else ""
    if not people.closed:
        return f"nobody is known as {called}{hint or f': {ROSTER_HINT}'}"
    way_out = f" {SPELLING_HINT}" if similar_ids else ""
    if not claims[0].platform:
        return f"nobody on the roster is called {called}{hint}{way_out}"
    group = "" if similar_ids else "; if it is a group, name its members in groups.csv"
    return f"{called} is not on the roster{hint}{way_out}{group}"
