"""A bar that shows how a training goes."""


def steps_bar(steps: int):
    """Return a bar that shows steps, the loss and the seconds."""
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
