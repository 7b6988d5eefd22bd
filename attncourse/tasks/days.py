"""Lines of one day or two, to be written as *month-day*: chapter 6 trains translators on them.

A day is one of 366, about 8.5 bits, whether it is written short or long. So a long line with one
day holds less than a short line with two. Every fifth day is kept back for testing.
"""

import datetime

import torch
from torch import Tensor
from torch.nn import functional as F

from attncourse.tasks.characters import to_ids
from attncourse.tasks.dates import ISO, WRITTEN, write_date
from attncourse.tasks.runs import UNASKED, mean_surprise

LINE_KINDS = ("one day, short", "one day, long", "two days")
FORMS = ("{day} {month:.3}", "the {day}{th} of {month}", "{day} {month:.3}")
NEW_YEAR = datetime.date(2024, 1, 1).toordinal()  # of a year with a 29th of February
IS_KEPT_DAY = torch.arange(366) % 5 == 2  # by day of the year: the 3rd of January, the 8th, …
N_IDS = len(WRITTEN) + 1, len(ISO) + 1  # of what is read and of what is written, with 0


def day_lines(
    n: int, generator: torch.Generator, *, kept: bool = False, same: bool = False
) -> tuple[list[tuple[str, str]], Tensor]:
    """Return ``n`` lines, as somebody might write them and in *month-day*, and their kinds.

    *3 mar* is kind 0, *the 3rd of march* kind 1, both *03-03*; *3 mar, 18 nov* is kind 2,
    *03-03 11-18*, and half of the lines. kept: whether days come from those kept for testing;
    of either sort all are equally likely. same: whether the two days of a line are one day.
    """
    pool = (IS_KEPT_DAY == kept).nonzero()[:, 0]  # 73 days kept, 293 others
    kinds = torch.randint(4, (n,), generator=generator).clamp(max=2)
    days = pool[torch.randint(len(pool), (n, 2), generator=generator)].tolist()
    lines = []
    for kind, both in zip(kinds.tolist(), days, strict=True):
        both = both[:1] * 2 if same else both
        days_written = both if kind == 2 else both[:1]
        pairs = [write_date(NEW_YEAR + day, FORMS[kind]) for day in days_written]
        written, iso = zip(*pairs, strict=True)
        lines.append((", ".join(written), " ".join(date[5:] for date in iso)))
    return lines, kinds


def as_ids(lines: list[tuple[str, str]]) -> tuple[Tensor, Tensor]:
    """Return the lines as ids: what is read ``(b, n)`` and what is to be written ``(b, t)``."""
    read, wanted = zip(*lines, strict=True)
    return to_ids(read, WRITTEN), to_ids(wanted, ISO)


def days(
    batch: int, generator: torch.Generator, *, same: bool = False
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return a batch for a translator: source ``(b, n)``, target ``(b, t)``, and the answers.

    The answers ``(b, t + 1)`` are the target's characters and its end, 0; behind it, `UNASKED`.
    same: as for `day_lines`.
    """
    source, target = as_ids(day_lines(batch, generator, same=same)[0])
    ended = F.pad(target == 0, (1, 0))  # (b, t + 1)
    return (source, target), F.pad(target, (0, 1)).masked_fill(ended, UNASKED)


def whole_lines(logits: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
    """Judge by exact match: a line is right if none of its characters is wrong.

    logits: ``(b, t + 1, classes)``. Returns the cross-entropy of a character, in nats, and True
    or False for each line, ``(b,)``.
    """
    wrong = (logits.argmax(dim=-1) != answer) & (answer != UNASKED)
    return mean_surprise(logits, answer), ~wrong.any(dim=1)
