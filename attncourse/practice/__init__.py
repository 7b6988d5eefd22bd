"""Practice: functions with one wrong line, to be found and mended.

``mend("kqv")`` in a notebook shows one at a time. ``drills_of("kqv")`` in ``drills`` are all of a
chapter.
"""

from attncourse.practice.session import mend

__all__ = ["mend"]
