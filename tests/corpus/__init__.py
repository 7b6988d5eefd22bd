"""Submissions that try to cheat, break out, exhaust, confuse, or that are merely damaged.

Each is data: a notebook, the points it deserves, and why. ``hostile.HOSTILE`` and
``hostile.HONEST`` list them all; test_corpus.py grades them, and benchmarks/corpus.py puts
nbgrader's own grades beside ours.
"""
