"""The cases of a check, tried in the submission's process: they go there all at once.

They are the same for every submission that a seed serves, so they are put into bytes once.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from attncourse.alarm import TimeUp
from attncourse.checks.drivers import DRIVERS
from attncourse.checks.exercise import Case, Exercise
from attncourse.checks.outcome import Outcome, Unusable, argument_names, describe_error
from attncourse.checks.trials import draw
from attncourse.grading.judge.remote.exceptions import exception_class
from attncourse.grading.judge.remote.session import Session, text_in
from attncourse.grading.judge.wire.decoding import Decoder
from attncourse.grading.judge.wire.encoding import Encoder

KEPT = 64  # exercises and seeds whose cases are kept
TEXT = 2200  # characters of an error's text
_kept: dict[tuple[Exercise, int], list[bytes]] = {}


def outcomes(session: Session, target: int, exercise: Exercise, seed: int) -> Iterator[Outcome]:
    """What an object of the submission's makes of each case, up to one that hangs."""
    cases = [case for _, case, _ in draw(exercise, seed)]
    names = argument_names(exercise)
    limit = min(exercise.limit, session.limits.call)
    request = {
        "op": "cases",
        "target": target,
        "names": names,
        "forbids": exercise.forbids,
        "seeds": [session.draw() for _ in cases] if session.carry_seed else None,
        "careful": session.careful,
    }
    asked = False
    for number, case in enumerate(cases):
        try:
            if not asked:
                session.request(request, packed(session, exercise, seed, cases), limit)
                asked = True
            reply, decoder = session.reply(limit + 1, last=number + 1 == len(cases))
            outcome = outcome_of(session, reply, decoder, [*names, *case.kwargs])
        except TimeUp:
            outcome = Outcome("hung")
        except Exception as error:  # an ended process stays ended: the rest have the same outcome
            outcome = Outcome("raised", error=type(error), text=describe_error(error))
        yield outcome
        if outcome.kind == "hung":
            session.midway = False
            return


def outcome_of(session: Session, reply: Any, decoder: Decoder, names: list[str]) -> Outcome:
    """A case's outcome, as the submission's process tells it."""
    told = reply.get("changed")
    changed = ", ".join(name for name in names if name in told) if isinstance(told, list) else ""
    kind = reply.get("kind")
    if kind == "hung":
        return Outcome("hung", mutated=changed)
    if kind == "raised" and isinstance(reply.get("raised"), dict):
        error = class_of(reply["raised"])
        text = text_in(reply, "text", TEXT)
        return Outcome("raised", error=error, text=text, mutated=changed)
    if kind == "value":
        return Outcome("value", session.value(decoder, reply.get("value")), mutated=changed)
    session.refuse("sent no outcome")


def class_of(told: dict[str, Any]) -> type[Exception]:
    """The class that stands here for an exception's."""
    if told.get("unusable") is True:
        return Unusable
    return exception_class(told.get("type"), told.get("above"))


def packed(session: Session, exercise: Exercise, seed: int, cases: list[Case]) -> list[bytes]:
    """The cases as the buffers of a request: what they are, then their arrays.

    Cases that hold functions of the checker's are put together for each session.
    """
    key = (exercise, seed)
    if key in _kept:
        return _kept[key]
    functions = len(session.callbacks)
    buffers = [b""]
    told = [told_of(case, session, buffers) for case in cases]
    buffers[0] = json.dumps(told).encode()
    if functions == len(session.callbacks):
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[key] = buffers
    return buffers


def told_of(case: Case, session: Session, buffers: list[bytes]) -> dict[str, Any]:
    """One case; its arrays are added to the buffers."""
    encoder = Encoder(session.form_of)
    encoder.buffers = buffers
    driver, bound = case.use, ()
    if isinstance(driver, partial):
        driver, bound = driver.func, driver.args
    if DRIVERS.get(driver.__name__) is not driver:
        raise TypeError(f"{driver.__name__} is none of the DRIVERS in attncourse/checks/drivers/")
    return {
        "use": driver.__name__,
        "bound": encoder.encode(list(bound)),
        "args": encoder.encode(list(case.args)),
        "kwargs": encoder.encode(case.kwargs),
    }
