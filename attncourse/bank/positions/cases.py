"""Cases that several of the chapter's exercises share."""

from attncourse.checks.callers import call_in_default_dtype
from attncourse.checks.exercise import Case
from attncourse.checks.writing.cases import CaseTable


def case_in_default_dtype(
    *args, note: str = "", raises: type[Exception] | None = None, **kwargs
) -> Case:
    """Return a case whose answer may have torch's default dtype or float64."""
    return Case(args, kwargs, note=note, raises=raises, use=call_in_default_dtype)


FIXED = CaseTable({})  # nothing is drawn
