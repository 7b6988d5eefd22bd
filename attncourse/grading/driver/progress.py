"""How far grading has come and how long it will still take: a bar, or a line now and then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn

EVERY = 10.0  # seconds between two lines, where there is no terminal for a bar


@contextmanager
def progress(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Shows the way to a total until the block ends; what it gives goes one step of it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    live, ended = console.is_terminal, Event()
    with Progress(*columns, console=console, transient=True, disable=not live) as bar:
        number = bar.add_task(what, total=total, pace="")
        task = bar.tasks[0]

        def step() -> None:
            bar.advance(number)
            bar.update(number, pace=pace(task))

        def write_lines() -> None:
            while not ended.wait(EVERY):
                line = f"{what}: {task.completed} of {total}, {task.fields['pace']}"
                console.print(line.removesuffix(", "), soft_wrap=True, highlight=False)
                console.file.flush()

        if not live:
            Thread(target=write_lines, daemon=True).start()
        try:
            yield step
        finally:
            ended.set()


def pace(task: Task) -> str:
    """How fast it goes and how long it will still take; nothing while that is not known."""
    if not task.speed or task.time_remaining is None:
        return ""
    return f"{task.speed:.1f} a second, about {timedelta(seconds=task.time_remaining)} left"
