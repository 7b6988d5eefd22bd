"""Chapter 20: a cache that many questions share, reserved for the longest or given out in pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import choice, controls, live, picture_row, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import require_count

MEMORY_LAYOUTS = ("reserved", "pages", "shared")
LABELS = ("the longest reserved", "pages", "pages, one beginning")
CELL, LEFT, TOP = (10, 14), 10, 6  # of a page, in pixels; where the cells begin
CURVES = (34, 8, 296, 74)  # left, top, width and height of the curves' field


def a_day(n: int = 120, seed: int = 20, common: int = 96) -> list[tuple[int, int, int]]:
    """Return questions as (step at which it comes, its tokens, tokens of its answer), by a seed.

    All begin with the same ``common`` tokens. Gaps between them are exponential, 2.5 steps
    on average; lengths are lognormal, cut at 120 and 290 tokens.
    """
    rng = np.random.default_rng(seed)
    comes = np.floor(rng.exponential(2.5, n).cumsum()).astype(int)
    asks = common + np.clip(rng.lognormal(3.3, 0.7, n), 4, 120).astype(int)
    answers = np.clip(rng.lognormal(4.0, 0.8, n), 8, 290).astype(int)
    days = zip(comes.tolist(), asks.tolist(), answers.tolist(), strict=True)
    return list(days)


@dataclass(eq=False)
class CachedQuestion:
    """A question in the cache: its tokens so far, those at its end, its pages in their order."""

    number: int
    tokens: int
    end: int
    pages: list[int] = field(default_factory=list)


class SharedCache:
    """A cache that questions come into and leave, step by step, by one way to give out room.

    ``across`` pages hold the longest question, and there is room for ``rows`` of these. The first
    ``shared`` pages hold what all questions begin with; they are never free.
    """

    def __init__(self, way: str, rows: int, longest: int, page: int, common: int):
        """Begin with an empty cache and nobody in the queue."""
        self.way, self.page = way, page
        self.across = longest // page
        self.shared = common // page if way == "shared" else 0
        self.free = list(range(self.shared, rows * self.across))
        self.running: list[CachedQuestion] = []
        self.queue: list[CachedQuestion] = []

    def pages_wanted(self, tokens: int) -> int:
        """Return how many pages a question of so many tokens is to have."""
        return self.across if self.way == "reserved" else -(-tokens // self.page)

    def release(self, question: CachedQuestion) -> None:
        """Take a question out, and its pages back."""
        self.running.remove(question)
        self.free.extend(question.pages[self.shared :])
        self.free.sort()

    def grow(self, question: CachedQuestion) -> bool:
        """Give a question the pages for one more token; True if there are enough."""
        more = self.pages_wanted(question.tokens + 1) - len(question.pages)
        if more > len(self.free):
            return False
        question.pages += self.free[: max(more, 0)]
        del self.free[: max(more, 0)]
        return True

    def step(self) -> None:
        """Let the answered leave, give all others a token, and let in whom there is room for."""
        for question in [q for q in self.running if q.tokens == q.end]:
            self.release(question)
        for question in list(self.running):
            while question in self.running and not self.grow(question):
                last = self.running[-1]
                self.release(last)
                self.queue.insert(0, last)
            if question in self.running:
                question.tokens += 1
        while self.queue:
            self.queue[0].pages = list(range(self.shared))
            if not self.grow(self.queue[0]):
                break
            self.running.append(self.queue.pop(0))

    def content(self) -> dict:
        """Return who holds which pages, and who waits."""
        return {
            "held": [(q.number, list(q.pages), q.tokens) for q in self.running],
            "waiting": [q.number for q in self.queue],
        }


def simulated(
    questions: Sequence[tuple[int, int, int]],
    way: str,
    rows: int,
    longest: int,
    page: int,
    common: int,
    steps: int,
) -> list[dict]:
    """Return the cache's content after each step, and which questions wait.

    A step gives each question that is being answered one token. Then the next in the queue come
    in, as long as there is room: for the longest (``reserved``), or for the tokens they have and
    one more. Where no page is left for a token, the question that came in last goes back to the
    head of the queue, keeps what it has written, and reads it again later.

    Returns for each step ``held``, a list of (question, its pages in the order of its tokens,
    tokens), and ``waiting``, a list of questions.
    """
    cache = SharedCache(way, rows, longest, page, common)
    days = []
    for step in range(steps):
        cache.queue += [
            CachedQuestion(i, asks, asks + answers)
            for i, (comes, asks, answers) in enumerate(questions)
            if comes == step
        ]
        cache.step()
        days.append(cache.content())
    return days


def cache_pages(
    questions: Sequence[tuple[int, int, int]],
    way: str = "reserved",
    step: int = 180,
    rows: int = 9,
    longest: int = 512,
    page: int = 16,
    common: int = 96,
    steps: int = 300,
) -> Moving:
    """Return a cache as a field of pages: who holds which, how full they are, and who waits.

    questions: as `a_day` gives them, each at most ``longest`` tokens with its answer. way: how room
    is given, one of ``reserved``, ``pages``, ``shared``. step: the one shown first, of ``steps``.
    rows: how many reservations the room holds. page: tokens on a page, which divides longest.
    common: tokens with which every question begins.

    Raises ``ValueError`` for another way, a step that is not there, pages that do not divide a
    reservation, and questions that do not fit.
    """
    for name, count in (("rows", rows), ("longest", longest), ("page", page), ("steps", steps)):
        require_count(name, count)
    require_day(questions, way, step, longest, page, common, steps)
    days = {w: simulated(questions, w, rows, longest, page, common, steps) for w in MEMORY_LAYOUTS}
    now, across = days[way][step], longest // page
    width, height = CELL
    pages = Diagram(
        "The cache",
        f"{rows} rows of {across} pages, each of {page} tokens. Filled pages are solid.",
        width=2 * LEFT + across * width,
        height=TOP + rows * (height + 2),
    )
    live(pages, "field", page_cells(now, way, rows, across, page, common))
    most = max(1, *(len(day["waiting"]) for each in days.values() for day in each))
    curves = waiting_curves(days, way, step, most)
    return Moving(
        "cache_pages",
        "One cache, many questions",
        controls(choice("way", "room:", list(LABELS), MEMORY_LAYOUTS.index(way)))
        + controls(slider_control("step", "step", 0, steps - 1, step))
        + picture_row(pages, curves)
        + controls(slider_control("who", "question", 1, max(len(now["held"]), 1), len(now["held"])))
        + legend(),
        "In a browser that runs scripts, one can move through the day, choose how room is given "
        "out, and see which pages a question holds.",
        {
            "questions": [list(question) for question in questions],
            "room": {"rows": rows, "longest": longest, "page": page, "common": common},
            "steps": steps,
            "way": way,
            "cell": [*CELL, LEFT, TOP],
            "curves": [*CURVES, most],
        },
        step_sentence(now, way, rows * longest, page),
    )


def require_day(
    questions: Sequence[tuple[int, int, int]],
    way: str,
    step: int,
    longest: int,
    page: int,
    common: int,
    steps: int,
) -> None:
    """Raise ``ValueError`` for what ``cache_pages`` cannot show, whole numbers given."""
    if way not in MEMORY_LAYOUTS:
        raise ValueError(f"way: expected one of {', '.join(MEMORY_LAYOUTS)}, got {way!r}")
    if longest % page:
        raise ValueError(f"page: expected a divisor of {longest}, got {page}")
    if not 0 <= step < steps:
        raise ValueError(f"step: expected a whole number from 0 to {steps - 1}, got {step}")
    for comes, asks, answers in questions:
        if comes < 0 or asks < max(common, 1) or answers < 1 or asks + answers > longest:
            raise ValueError(
                f"questions: expected (step, at least {common} tokens, answer) of at most "
                f"{longest} tokens, got {(comes, asks, answers)}"
            )


def waiting_curves(days: dict[str, list[dict]], way: str, step: int, most: int) -> Diagram:
    """Return the drawing of how many questions wait, ``most`` at the top, for each way."""
    curves = Diagram(
        "Questions that wait",
        "Three curves over the steps, how many questions wait: one for each way to give out room.",
        height=108,
    )
    left, top, wide, tall = CURVES
    curves.text(left, top + tall + 18, "0", "quiet", size=13)
    curves.text(left + wide / 2, top + tall + 18, "who waits, by step", "quiet", size=13)
    curves.text(left + wide - 4, top + tall + 18, str(len(days[way])), "quiet", size=13)
    curves.text(left - 6, top + 10, str(most), "quiet", size=13, anchor="end")
    curves.path(f"M{left},{top}v{tall}h{wide}", "quiet", thick=1)
    live(curves, "curves", waiting_lines(days, way, step, most))
    return curves


def legend() -> str:
    """Return the key to a page's colours."""
    kinds = (("query", "tokens"), ("key", "one question"), ("value", "shared"))
    squares = [f'<i style="--here:var(--{role})"></i>{words}' for role, words in kinds]
    squares.append('<i class="cp-empty"></i>reserved')
    return f'<p class="cp-legend">{"".join(f"<span>{square}</span>" for square in squares)}</p>'


def tokens_on(now: dict, page: int) -> dict[int, int]:
    """Return how many tokens each page holds that is in use."""
    tokens_by_page: dict[int, int] = {}
    for _, pages, tokens in now["held"]:
        for k, at in enumerate(pages):
            tokens_by_page[at] = min(page, max(tokens - k * page, 0))
    return tokens_by_page


def step_sentence(now: dict, way: str, room: int, page: int) -> str:
    """Return the sentence under the figure for a step."""
    share = sum(tokens_on(now, page).values()) / room
    n, waits = len(now["held"]), len(now["waiting"])
    text = f"Being answered: {n}, waiting: {waits}. "
    text += f"Tokens fill {100 * share:.0f} % of the room."
    if not now["held"]:
        return text
    number, pages, tokens = now["held"][-1]
    used = -(-tokens // page)
    where = (
        f"{used} of its {len(pages)} pages"
        if way == "reserved"
        else f"{used} page{'s' if used != 1 else ''}"
    )
    return f"{text} Question {number + 1}: {tokens} tokens in {where}."


def page_cells(now: dict, way: str, rows: int, across: int, page: int, common: int) -> str:
    """Draw the cells: outlines, reserved ones hatched, and tokens as high as the page is full."""
    (width, height), held = CELL, tokens_on(now, page)
    shared = common // page if way == "shared" else 0
    chosen = set(now["held"][-1][1]) if now["held"] else set()
    parts = []
    for at in range(rows * across):
        x, y = LEFT + at % across * width, TOP + at // across * (height + 2)
        kind = "cp-free" if at not in held else "cp-mine" if at in chosen else "cp-held"
        parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width - 1}" height="{height}"/>'
        )
        high = height * held.get(at, 0) / page
        if high:
            role = "value" if at < shared else "key" if at in chosen else "query"
            parts.append(
                f'<rect class="cp-full" x="{x}" y="{y + height - high:.2f}" width="{width - 1}" '
                f'height="{high:.2f}" style="fill:var(--{role})"/>'
            )
    return "".join(parts)


def waiting_lines(days: dict[str, list[dict]], way: str, step: int, most: int) -> str:
    """Draw for each way how many questions wait, step by step, with a mark at the step."""
    left, top, wide, tall = CURVES

    def at(i: int, day: dict) -> tuple[float, float]:
        return left + wide * i / (steps - 1), top + tall * (1 - len(day["waiting"]) / most)

    steps, parts = len(days[way]), []
    for name, each in days.items():
        points = "L".join("{:.1f},{:.1f}".format(*at(i, day)) for i, day in enumerate(each))
        kind = "cp-now" if name == way else "cp-other"
        parts.append(f'<path class="{kind}" d="M{points}"/>')
    x, y = at(step, days[way][step])
    return "".join(parts) + f'<circle class="cp-mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
