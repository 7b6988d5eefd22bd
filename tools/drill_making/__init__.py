"""Drills: right answers with one line changed, made and proved by the checks.

``sources.py`` collects right answers, ``line_changes.py`` changes a line of one, ``proving.py``
asks the checks what the change is called and whether another line could mend it, ``choosing.py``
takes as many kinds as there are, ``examples.py`` writes down what comes out and what should.
"""
