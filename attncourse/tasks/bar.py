"""A bar that shows how a training goes, where somebody looks on."""

import os
import sys


def steps_bar(steps: int):
    """A bar that shows steps, the loss and the seconds."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns)
    progress.add_task("training", total=steps, loss=float("nan"))
    return progress


def someone_looks_on() -> bool:
    """Whether this runs in a terminal, in Colab, or in a notebook that somebody has open."""
    opened = "google.colab" in sys.modules or "JPY_SESSION_NAME" in os.environ
    return opened or (sys.stderr is not None and sys.stderr.isatty())
