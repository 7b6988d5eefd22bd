"""Chapter 20: where keys and values lie when many ask at once, simulated.

Questions come to one machine, whose memory holds the keys and values of so many tokens. Each has a
*system prompt* (what a service puts before every question), words of its own, and an answer that is
written at 16 tokens a second. Memory is given out in one of three ways: room for the longest,
*reserved* at once; in *pages* of 16 tokens, as they are needed; in pages of which those that a
system prompt fills are *shared* by all that begin with it. A question is let in while a free page
is left for each that is answered already. Where none is free, the one that came in last goes back
to the head of the queue and is answered anew.

Drawn, with three seeds: arrivals are Poisson, at a rate of 1 − cos(2π t / day), so none at midnight
and twice the mean at noon; system prompts are four, of 60, 120, 250 and 500 tokens, equally likely;
own words are log-normal with median 60 and σ 0.9, cut to 4 … 768, answers with median 150 and σ
0.8, cut to 1 … 768. Reading takes no time here, and speed does not fall with the number of
sequences: what is counted is room.

Source: Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
PagedAttention.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

PAGE, LONGEST = 16, 2048  # tokens
MEMORY = 8 * LONGEST
DAY, QUARTER = 86_400, 900  # seconds; a tick is one
CACHE_LAYOUTS = ("reserved", "pages", "shared")
SYSTEMS = (60, 120, 250, 500)


@dataclass(frozen=True)
class Question:
    """The second a question comes in, and its tokens.

    These are its system prompt (which, of how many tokens), its own, and those of its answer.
    """

    second: int
    system: int
    shared: int
    own_tokens: int
    answer: int

    @property
    def total(self) -> int:
        """The tokens of the question and of its answer together."""
        return self.shared + self.own_tokens + self.answer


@dataclass(eq=False)
class Answering:
    """A question that is being answered: its pages, in order, and the tokens that lie in them."""

    name: int
    question: Question
    table: list[int]
    tokens: int


@dataclass
class Memory:
    """Pages that are free, how many use each other one, and the pages of each system prompt."""

    free: list[int]
    page: int
    users: dict[int, int] = field(default_factory=dict)
    systems: dict[int, list[int]] = field(default_factory=dict)

    def take(self, many: int) -> list[int]:
        """Free pages."""
        pages = [self.free.pop() for _ in range(many)]
        self.users.update(dict.fromkeys(pages, 1))
        return pages

    def begin(
        self, name: int, question: Question, way: str, longest: int, left: int
    ) -> Answering | None:
        """Return a question with the pages that it begins with.

        None where fewer than ``left`` would be free behind it.
        """
        tokens = question.shared + question.own_tokens
        many = math.ceil((longest if way == "reserved" else tokens) / self.page)
        filled = question.shared // self.page if way == "shared" else 0
        common = self.systems.get(question.system, []) if filled else []
        if many - len(common) + left > len(self.free):
            return None
        for page in common:
            self.users[page] += 1
        table = [*common, *self.take(many - len(common))]
        if filled:
            self.systems[question.system] = table[:filled]
        return Answering(name, question, table, tokens)

    def end(self, answering: Answering) -> None:
        """Free the pages that nobody else uses."""
        for page in reversed(answering.table):
            self.users[page] -= 1
            if self.users[page] == 0:
                del self.users[page]
                self.free.append(page)
        common = self.systems.get(answering.question.system)
        if common and common[0] not in self.users:
            del self.systems[answering.question.system]

    def held(self, running: Iterable[Answering]) -> int:
        """Return how many tokens lie in memory, those that several share counted once."""
        shares = {system: len(pages) * self.page for system, pages in self.systems.items()}
        own_tokens = sum(
            answering.tokens - shares.get(answering.question.system, 0) for answering in running
        )
        return own_tokens + sum(shares.values())


@dataclass
class Second:
    """One second of a simulation, before the next tokens are written."""

    at: int
    memory: Memory
    running: list[Answering]
    waiting: int
    put_back: int


def serve_questions(
    questions: Sequence[Question],
    way: str,
    look: Callable[[Second], None] = lambda second: None,
    *,
    memory: int = MEMORY,
    page: int = PAGE,
    longest: int = LONGEST,
    speed: int = PAGE,
) -> list[int]:
    """Return how many seconds each question waits before its answer begins for good.

    ``look`` sees every second in which somebody is answered or waits. Raises ``ValueError`` for a
    question longer than ``longest``, for memory that does not hold the longest, and another way.
    """
    if way not in CACHE_LAYOUTS:
        raise ValueError(f"way: expected one of {', '.join(CACHE_LAYOUTS)}, got {way!r}")
    if memory < longest or any(question.total > longest for question in questions):
        most = max((question.total for question in questions), default=0)
        raise ValueError(f"longest: expected {most} to {memory} tokens, got {longest}")
    pool = Memory(list(reversed(range(memory // page))), page)
    coming = deque(sorted(enumerate(questions), key=lambda pair: pair[1].second))
    waiting: deque[tuple[int, Question]] = deque()
    running: list[Answering] = []
    waited, at, put_back = [0] * len(questions), 0, 0
    while coming or waiting or running:
        if not waiting and not running:
            at = max(at, coming[0][1].second)
        while coming and coming[0][1].second <= at:
            waiting.append(coming.popleft())
        while waiting:
            left = 0 if way == "reserved" else len(running)
            answering = pool.begin(*waiting[0], way, longest, left)
            if answering is None:
                break
            waiting.popleft()
            waited[answering.name] = at - answering.question.second
            running.append(answering)
        look(Second(at, pool, running, len(waiting), put_back))
        at += 1
        for answering in list(running):
            if answering not in running:  # put back a moment ago
                continue
            answering.tokens = min(answering.tokens + speed, answering.question.total)
            while len(answering.table) * page < answering.tokens and answering in running:
                if pool.free:
                    answering.table += pool.take(1)
                    continue
                last = running.pop()
                pool.end(last)
                waiting.appendleft((last.name, last.question))
                put_back += 1
        for answering in [a for a in running if a.tokens == a.question.total]:
            pool.end(answering)
            running.remove(answering)
    return waited


# --- a day, and a rush ---------------------------------------------------------------------------


def draw_questions(seconds: Sequence[int], rng: np.random.Generator) -> list[Question]:
    """Return questions that come in at these seconds."""
    n = len(seconds)
    system = rng.integers(len(SYSTEMS), size=n)
    own_tokens = (
        np.exp(math.log(60) + 0.9 * rng.standard_normal(n)).round().clip(4, 768).astype(int)
    )
    answer = np.exp(math.log(150) + 0.8 * rng.standard_normal(n)).round().clip(1, 768).astype(int)
    columns = (seconds, system.tolist(), own_tokens.tolist(), answer.tolist())
    return [Question(at, s, SYSTEMS[s], o, a) for at, s, o, a in zip(*columns, strict=True)]


def day_of_questions(seed: int, mean: float = 1.5) -> list[Question]:
    """Return the questions of a day, ``mean`` a second on average."""
    rng = np.random.default_rng(seed)
    rate = mean * (1 - np.cos(2 * np.pi * np.arange(DAY) / DAY))
    seconds = np.repeat(np.arange(DAY), rng.poisson(rate))
    return draw_questions(seconds.tolist(), rng)


def whole_day(seed: int, way: str) -> dict:
    """Return a day's waits, and by quarter of an hour how many are answered and how many wait."""
    counts = np.zeros((3, DAY // QUARTER))
    held = reserved = put_back = 0

    def look(now: Second) -> None:
        nonlocal held, reserved, put_back
        if now.at < DAY:
            counts[:, now.at // QUARTER] += len(now.running), now.waiting, 1
        held += now.memory.held(now.running)
        reserved += len(now.memory.users) * PAGE
        put_back = now.put_back

    questions = day_of_questions(seed)
    waited = np.array(serve_questions(questions, way, look))
    return {
        "seed": seed,
        "way": way,
        "questions": len(questions),
        "wait": {str(q): round(float(np.percentile(waited, q)), 1) for q in (50, 95, 99)},
        "waited_a_minute": round(float((waited >= 60).mean()), 4),
        "holds_tokens": round(held / reserved, 4),
        "put_back": put_back,
        "running": (counts[0] / QUARTER).round(1).tolist(),
        "waiting": (counts[1] / QUARTER).round(1).tolist(),
    }


def rush(seed: int, way: str, n: int = 1000) -> dict:
    """Return how many are answered at a time if all come at once, and memory's share in use.

    Seconds count while somebody waits.
    """
    running, held, put_back = [], [], 0

    def look(now: Second) -> None:
        nonlocal put_back
        put_back = now.put_back
        if now.waiting:
            running.append(len(now.running))
            held.append(now.memory.held(now.running))

    serve_questions(draw_questions([0] * n, np.random.default_rng(1000 + seed)), way, look)
    return {
        "seed": seed,
        "way": way,
        "at_once": round(float(np.mean(running)), 2),
        "holds_tokens": round(float(np.mean(held)) / MEMORY, 4),
        "seconds": len(running),
        "put_back": put_back,
    }


def measure_pages(seeds: Sequence[int] = range(3), day: Callable = whole_day) -> dict:
    """Measure the rush and the day in each of the three ways, as the page shows them."""
    return {
        "page": PAGE,
        "longest": LONGEST,
        "memory": MEMORY,
        "quarter": QUARTER,
        "ways": list(CACHE_LAYOUTS),
        "rush": [rush(seed, way) for way in CACHE_LAYOUTS for seed in seeds],
        "day": [day(seed, way) for way in CACHE_LAYOUTS for seed in seeds],
    }
