"""Grading: what a class handed in, judged and written into nbgrader's gradebook.

``submission`` reads what was handed in and plans what runs. ``judging`` runs it: the submission's
cells in a process of its own, locked into a ``jail``, the instructor's tests in another. All of
that is pure. ``records`` reads a course's folders and alone writes them; ``pages`` makes what
nbgrader shows, ``reporting`` the class report and the exports. ``cli`` is the command line.
"""
