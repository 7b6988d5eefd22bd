"""Grading: what a class handed in, judged and written into nbgrader's gradebook.

``submission`` reads what was handed in and plans what runs. ``judge`` runs it: the submission's
cells in a process of its own, locked into a ``jail``, the instructor's tests in another. All of
that is pure. ``course`` knows a course's folders, ``gradebook`` its database; ``driver`` grades a
class and writes what each has earned; ``nbgrader`` is for its own commands, ``results`` makes
the class report and the exports. ``cli`` is the command line. A contract in ``pyproject.toml`` says
which of them may import which.
"""
