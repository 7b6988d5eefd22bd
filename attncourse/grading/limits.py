"""Limits of a submission. The defaults are far above what an honest one needs."""

from dataclasses import dataclass, field, fields, replace

from attncourse.grading.errors import UserError

MB = 1_000_000
TIMES = ("submission", "cell", "call", "cpu")


@dataclass(frozen=True)
class Limits:
    """Upper bounds for one submission. Times are seconds of processor time.

    So other work on the machine takes nothing from them; what sleeps has an end as well
    (``support/alarm.py``). ``submission`` is for all of it with its tests, ``cell`` for one of its
    cells, ``call`` for one call that a test makes, ``cpu`` for all that its process does.
    ``memory`` counts in MB beyond the interpreter's own, ``disk`` is the MB its folder holds,
    ``output`` the MB it may print, ``message`` the MB that one call may send back. ``processes``
    counts the process itself: with 1 it cannot start another. ``grace`` is how long a call may take
    to stop once it was told to, until its process is ended. ``stretch`` is how many times as long
    as they were set to the times are, for a slow machine: students are told what was set.
    """

    submission: float = 120.0
    cell: float = 20.0
    call: float = 20.0
    cpu: float = 120.0
    memory: int = 2000
    disk: int = 64
    output: float = 1.0
    message: float = 64.0
    processes: int = 1
    threads: int = 64
    files: int = 256
    grace: float = 2.0
    stretch: float = field(default=1.0, compare=False)

    def __post_init__(self) -> None:
        """Raise ``UserError`` for a limit that is no positive number."""
        for bound in fields(self):
            value = getattr(self, bound.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise UserError(f"limit {bound.name}: expected a positive number, got {value!r}")

    @classmethod
    def of(cls, submission: float) -> "Limits":
        """Return limits for ``submission`` seconds: enough for a few cells that never end."""
        cell, call = (min(usual, submission / 4) for usual in (cls.cell, cls.call))
        return cls(submission=submission, cell=cell, call=call, cpu=submission)

    def stretched(self, factor: float) -> "Limits":
        """Return these limits with times for a machine that is ``factor`` times as slow."""
        times = {name: factor * getattr(self, name) for name in (*TIMES, "stretch")}
        return replace(self, **times)
