"""Wrong lines written by hand, where changes that a program makes give too few drills.

By exercise: a line of one of its right answers as it stands there, and what somebody might have
written in its place. The checks name each and prove it, like every other change.
"""

WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {}
