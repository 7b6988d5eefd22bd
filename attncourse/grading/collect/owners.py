"""Whom a claim means: one of the class, somebody new, or nobody, with the reason.

All that a path says of a person has to agree: a file called after another is given to neither.
"""

from collections.abc import Iterable

from attncourse.grading.collect.roster import Class, squeezed, unfit
from attncourse.grading.collect.schemes import Claim
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.harmless import one_line

WAY_OUT = "name the class with --roster"
ANONYMOUS = ("participant", "anon", "lateanon")


def owner(claim: Claim, people: Class) -> tuple[str, bool]:
    """The student who is meant, or "", and whether that is by more than a name.

    Raises ``Ungraded`` where several are. Without a roster, what a platform calls somebody makes a
    student.
    """
    sure = False
    if claim.number or claim.ids:  # a name beside them is what a person is called, and no id
        where = claim.platform if claim.number else ""
        found = people.by_key([claim.number] if claim.number else claim.ids, where)
        sure = len(found) == 1
        found = found or people.by_name(name for name in claim.names if name not in claim.ids)
        if rivals := people.by_key(claim.rivals, where) - found:
            raise two(rivals | (found or {claim.names[0]}))
        said = [found]
    else:
        said = [people.meant(name) for name in claim.names]
    found = agreed([*said, *map(people.meant, claim.outer)])
    if not found and (below := agreed(map(people.meant, claim.inner))):
        found = agreed([below] if people.closed else [below, {claim.names[0]}])
    if len(found) > 1:
        raise several(claim, found)
    return (found.pop(), sure) if found else (newcomer(claim, people), False)


def agreed(said: Iterable[set[str]]) -> set[str]:
    """Whom everything means that names anybody. Raises ``Ungraded`` where that is nobody."""
    sets = [found for found in said if found]
    if sets and not set.intersection(*sets):
        raise two(set.union(*sets))
    return set.intersection(*sets) if sets else set()


def newcomer(claim: Claim, people: Class) -> str:
    """The id of somebody whom nobody knows yet and a platform names; else ""."""
    name = claim.names[0]
    if people.closed or not claim.platform or squeezed(name) in ANONYMOUS:
        return ""
    is_id = claim.platform == "nbgrader" or name in claim.ids
    made = name if is_id and not unfit(name) else folder_name(name)
    if made in people.members:  # of whom another name is known
        raise several(claim, {made})
    return made


def folder_name(name: str) -> str:
    """A folder's name for somebody whom no roster names: *Ada Lovelace* is ``ada-lovelace``."""
    kept = "".join(c if c.isalnum() or c in "@.+_" else "-" for c in name.strip().lower())
    return "-".join(part for part in kept.strip(".").split("-") if part)[:100]


def shown(claim: Claim) -> str:
    return one_line(claim.names[0], 40) + (f" ({claim.number})" if claim.number else "")


def several(claim: Claim, found: set[str]) -> Ungraded:
    return Ungraded(f"{shown(claim)} may be {listed(found, 'or')}: {WAY_OUT}")


def two(found: set[str]) -> Ungraded:
    return Ungraded(f"its path names {listed(found, 'and')}: call it after its owner alone")


def listed(found: set[str], word: str) -> str:
    return f" {word} ".join(one_line(student, 40) for student in sorted(found)[:4])


def reason(claims: list[Claim], people: Class) -> str:
    """Why a file with these claims is nobody's."""
    if not claims:
        return "its path names nobody"
    name, called = claims[0].names[0], shown(claims[0])
    if squeezed(name) in ANONYMOUS:
        return f"anonymous: {WAY_OUT}"
    near = people.nearest(name)
    hint = f"; is it {near}?" if near else ""
    if not people.closed:
        return f"nobody is known as {called}{hint or f': {WAY_OUT}'}"
    if not claims[0].platform:
        return f"nobody on the roster is called {called}{hint}"
    return f"{called} is not on the roster{hint}"
