"""Totals of a course: weighted shares of each assignment's points, the lowest dropped.

``weights.csv`` is the instructor's. A row is an assignment: its ``weight``; the ``group`` of which
the lowest are dropped, and in one row of a group ``drop``, how many; and who is ``excused``, ids
parted by ``;``. What somebody is excused from, or what is dropped, counts for nothing either way.
"""

import math
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from attncourse.grading.errors import UserError
from attncourse.grading.harmless import one_line
from attncourse.grading.names import did_you_mean
from attncourse.grading.results.class_results import ClassResults, Remark, people_in
from attncourse.grading.spreadsheet import Rows, Value, records_in

WEIGHTS_FILE = "weights.csv"
WEIGHTS_HEAD = ("assignment", "weight")
TOTALS_PERSON_COLUMNS = ("student", "last_name", "first_name", "email")


class Weighted(NamedTuple):
    """An assignment's row: its weight, its group, how many the group drops, who is excused."""

    weight: float
    group: str = ""
    drop: int = 0
    excused: frozenset[str] = frozenset()


def totals_rows(classes: list[ClassResults], remark: Remark, course: Path) -> Rows:
    """Return the head, and for each student the percent of each assignment and of the course."""
    weights, students = read_weights(course / WEIGHTS_FILE), people_in(classes)
    for who in sorted({who for row in weights.values() for who in row.excused} - set(students)):
        hint = did_you_mean(who, students)
        raise UserError(
            f"{WEIGHTS_FILE}: no student who is excused is called {one_line(who)}{hint}"
        )
    maxima = {results.assignment: math.fsum(results.cells.values()) for results in classes}
    counted = [results for results in classes if results.assignment in weights]
    if unweighted := [name for name in maxima if name not in weights]:
        remark(f"not in {WEIGHTS_FILE}, and not in the totals: {', '.join(unweighted)}")
    for name in sorted(weights.keys() - maxima.keys()):
        remark(f"nothing is graded of {one_line(name)} yet: it is not in the totals")
    counted = [results for results in counted if maxima[results.assignment] > 0]
    names = [results.assignment for results in counted]
    rows: Rows = [[*TOTALS_PERSON_COLUMNS, *names, "total", "dropped", "excused"]]
    for student, person in sorted(students.items()):
        shares = {}
        for results in counted:
            result = results.by_student.get(student)
            shares[results.assignment] = (result.score if result else 0) / maxima[
                results.assignment
            ]
        excused = [name for name in names if student in weights[name].excused]
        counted_shares = {name: share for name, share in shares.items() if name not in excused}
        dropped = lowest_of_group(counted_shares, weights)
        total = weighted_mean(
            {n: s for n, s in counted_shares.items() if n not in dropped}, weights
        )
        row: list[Value] = [student, person.last_name, person.first_name, person.email]
        row += [None if name in excused else 100 * shares[name] for name in names]
        row += [None if total is None else 100 * total, "; ".join(dropped), "; ".join(excused)]
        rows.append(row)
    return rows


def lowest_of_group(shares: dict[str, float], weights: dict[str, Weighted]) -> list[str]:
    """Return the assignments to drop: the lowest shares of each group, and never all of it.

    Of equal ones it is the one with the most weight, which costs nobody anything.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in shares:
        groups[weights[name].group].append(name)
    dropped: list[str] = []
    for group, names in groups.items():
        drop = max(row.drop for row in weights.values() if row.group == group)
        names.sort(key=lambda name: (shares[name], -weights[name].weight))
        dropped += names[: min(drop, len(names) - 1)]
    return sorted(dropped)


def weighted_mean(shares: dict[str, float], weights: dict[str, Weighted]) -> float | None:
    """Return the weighted mean of the shares; None if no weight counts."""
    total_weight = math.fsum(weights[name].weight for name in shares)
    return (
        math.fsum(weights[n].weight * s for n, s in shares.items()) / total_weight
        if total_weight
        else None
    )


def read_weights(path: Path) -> dict[str, Weighted]:
    """Return the rows of the file by assignment; raise ``UserError`` with a line at fault."""
    head, lines = records_in(path)
    if not set(WEIGHTS_HEAD) <= set(head):
        raise UserError(
            f"{path}: expected a table with the head {','.join(WEIGHTS_HEAD)} in its first line; "
            "group, drop and excused may follow"
        )
    weights: dict[str, Weighted] = {}
    for number, line in enumerate(lines, start=2):
        cells = {key: text.strip() for key, text in line.items()}
        if not any(cells.values()):
            continue
        name, where = cells.get("assignment", ""), f"{path}, line {number}"
        if not name or name in weights:
            raise UserError(f"{where}: expected an assignment that is in no other line, got {name}")
        excused = (who.strip() for who in cells.get("excused", "").split(";"))
        try:
            weight = float(cells.get("weight", "").replace(",", "."))
            drop = int(cells.get("drop") or 0)
            if not (math.isfinite(weight) and weight >= 0 and drop >= 0):
                raise ValueError
        except ValueError:
            raise UserError(f"{where}: expected numbers, 0 or more, as weight and drop") from None
        group = cells.get("group", "")
        if drop and any(row.drop for row in weights.values() if row.group == group):
            which = group or "without a name"
            raise UserError(f"{where}: the group {which} has its drop in another line already")
        weights[name] = Weighted(weight, group, drop, frozenset(excused) - {""})
    return weights
