"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.conventions import forbidden, masked

VARIANTS = (forbidden({"attend": masked()}),)
