"""Grading: what a class handed in, judged and written into nbgrader's gradebook.

``notebook`` reads, ``plan`` decides what runs, ``process`` and ``worker`` run it apart from this
process, ``judge`` turns what came back into a ``Report``. All of that is pure; ``course`` reads
the folders, and ``gradebook`` alone writes.
"""
