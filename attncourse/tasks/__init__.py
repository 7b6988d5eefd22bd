"""Data sets and models that the pages train, one file each, built from the chapters.

A chapter never imports a task; its page does, to show what the chapter's functions are good for.
"""
