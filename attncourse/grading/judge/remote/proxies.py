"""Proxies that a test holds in place of a submission's functions, classes and objects.

A proxy sends its arguments to the submission's process and returns the values that come back. It
compares as itself: no truth value about one of the test's own values is ever asked of the
submission, so an object that says it equals everything equals nothing here.

The cases of a check go to that process all at once. They are the same for every submission that a
seed serves, so they are put into bytes once.
"""

import inspect
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from attncourse.checks.callers import CALLERS
from attncourse.checks.exercise import Case, Exercise
from attncourse.checks.trying.outcome import (
    Outcome,
    Unusable,
    argument_names,
    describe_error,
    outcome_of_facts,
)
from attncourse.checks.trying.trials import draw
from attncourse.grading.judge.remote.conversation import sent_text
from attncourse.grading.judge.remote.session_type import ObjectSession
from attncourse.grading.judge.wire import decoding
from attncourse.grading.judge.wire.encoding import Encoder
from attncourse.grading.judge.wire.frames import WireError
from attncourse.support.alarm import TimeUp

PARAMETER_KINDS = {int(kind): kind for kind in inspect._ParameterKind}


def proxy_for(session: ObjectSession, description: Any) -> Any:
    """Return the proxy for an object that the submission's process describes in a reply."""
    if not isinstance(description, dict):
        raise WireError("sent no object")
    number, kind = decoding.natural_number(description.get("h")), description.get("kind")
    if kind == "module":
        return session.mirrors.get_or_make_copy(number)
    # One object, one proxy, while there is one: a test may compare by ``is``.
    proxy = session.proxies.get(number)
    if proxy is None:
        makers: dict[Any, Any] = {"class": class_proxy, "function": RemoteFunction}
        make = makers.get(kind, RemoteObject)
        proxy = session.proxies[number] = make(session, number, description)
        session.forget_with(proxy, number)
    return proxy


class Remote:
    """A proxy: it stands for an object that lives in the submission's process."""

    def __init__(self, session: ObjectSession, number: int, description: dict[str, Any]):
        # The class's own ``__setattr__`` sets attributes in the other process.
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_type", name_in(description, "type"))

    def attncourse_handle(self) -> int:
        """Return the number by which its process knows the object."""
        return object.__getattribute__(self, "_number")

    def attncourse_outcomes(self, exercise: Exercise, seed: int) -> Iterator[Outcome]:
        """Yield the outcome of each case of a check that the object is tried on."""
        return outcomes_from_replies(self._session, self._number, exercise, seed)

    def __getattr__(self, name: str) -> Any:
        """Return the object's attribute; private ones raise ``AttributeError``."""
        if name.startswith("_"):
            raise AttributeError(f"{self._type} has no attribute {name}")
        return self._session.use("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the object's attribute in its process."""
        self._session.use("setattr", self, name, value)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the object in its process."""
        return self._session.use("call", self, *args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Remote":
        """Return the proxy itself: a copy would have to be asked of the submission."""
        return self

    def __bool__(self) -> bool:
        """Raise ``TypeError``: no truth value is asked of the submission."""
        raise TypeError(f"got {self._type}, which is no truth value")

    def __repr__(self) -> str:
        """Return the class's name, and nothing that the submission made."""
        return f"<{self._type}>"


class RemoteFunction(Remote):
    """A function, method or other callable of the submission."""

    def __init__(self, session: ObjectSession, number: int, description: dict[str, Any]):
        super().__init__(session, number, description)
        self.__dict__["__name__"] = name_in(description, "name")
        self.__dict__["__signature__"] = signature_of(description)


class RemoteObject(Remote):
    """An object of the submission's own: attributes, methods, items, iteration."""

    def __len__(self) -> int:
        """Return the length that the object says it has."""
        return self._session.use("len", self)

    def __getitem__(self, key: Any) -> Any:
        """Return the object's item."""
        return self._session.use("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set the object's item in its process."""
        self._session.use("setitem", self, key, value)

    def __iter__(self) -> "Iterator[Any] | Remote":
        """Return an iterator over the object's items."""
        steps = self._session.use("iter", self)
        if isinstance(steps, Remote) and steps._number == self._number:
            return steps
        return remote_items(
            self, remote_generator(steps) if isinstance(steps, Remote) else iter(steps)
        )

    def __contains__(self, value: Any) -> bool:
        """True if the value is among the object's items, as many as its length says."""
        return any(
            item is value or item == value for item in islice(iter(self), remote_length(self))
        )

    def __next__(self) -> Any:
        """Return the object's next item."""
        return self._session.use("next", self)

    def __eq__(self, other: Any) -> bool:
        """True for a proxy of the same object, or of one that the submission says is equal."""
        if not isinstance(other, Remote):
            return False
        return self._number == other._number or self._session.use("equal", self, other) is True

    def __hash__(self) -> int:
        """Return a hash: that of the handle, so that all proxies of one object share it."""
        return hash(self._number)


def remote_length(thing: Any) -> int | None:
    """Return the length that an object says it has; None where it has none."""
    with suppress(TypeError, AttributeError, NotImplementedError):
        return len(thing)
    return None


def remote_items(thing: Remote, items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items of an object; raise ``TypeError`` if it has a length and gives no item.

    A test that loops over none would test nothing.
    """
    has_item = False
    for item in items:
        has_item = True
        yield item
    if not has_item and (declared := remote_length(thing)):
        raise TypeError(f"got {thing._type}, which has a length of {declared} and no items")


def remote_generator(steps: Remote) -> Iterator[Any]:
    """Yield the items of an iterator in the submission's process, until it ends."""
    while True:
        try:
            item = steps._session.use("next", steps)
        except StopIteration:
            return
        yield item


class RemoteClass(type):
    """The type of proxies for classes: calling one builds an object in the submission's process."""

    def attncourse_handle(cls) -> int:
        """Return the number by which its process knows the class."""
        return cls._number

    def attncourse_outcomes(cls, exercise: Exercise, seed: int) -> Iterator[Outcome]:
        """Yield the outcome of each case of a check that the class is tried on."""
        return outcomes_from_replies(cls._session, cls._number, exercise, seed)

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        """Build an object in the submission's process and return its proxy."""
        return cls._session.use("call", cls, *args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        """Return the class's attribute; private ones raise ``AttributeError``."""
        if name.startswith("_"):
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        return type.__getattribute__(cls, "_session").use("getattr", cls, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        """True for a proxy whose object is one of the class's in its process."""
        if not hasattr(type(instance), "attncourse_handle"):
            return False
        return cls._session.use("isinstance", instance, cls) is True

    def __bool__(cls) -> bool:
        """Raise ``TypeError``: a test that asks for it has mistaken a class for a value."""
        raise TypeError(f"got the class {cls.__name__}, which is no truth value")

    def __deepcopy__(cls, memo: dict[int, Any]) -> "RemoteClass":
        """Return the class itself, as Python does for its own."""
        return cls


def class_proxy(session: ObjectSession, number: int, description: dict[str, Any]) -> RemoteClass:
    """Return the proxy for a class; if modules are made of it, one below ``torch.nn.Module``."""
    bases: tuple[type, ...] = ()
    if description.get("module") is True:
        bases = (session.mirrors.class_of_copy(description.get("bases")),)
    names = {"_session": session, "_number": number, "__signature__": signature_of(description)}
    return RemoteClass(name_in(description, "name") or "Class", bases, names)


def name_in(description: dict[str, Any], key: str) -> str:
    """Return a name that was sent under a key, made an identifier; "" where it can be none."""
    name = re.sub(r"\W", "_", sent_text(description, key, 80))
    return name if decoding.IDENTIFIER.fullmatch(name) else ""


def signature_of(description: dict[str, Any]) -> inspect.Signature | None:
    """Return the signature that was sent; None where there is none."""
    parameters = []
    try:
        if len(description.get("signature") or ()) > decoding.MAX_PARAMETERS:
            return None
        for name, kind, optional in description.get("signature") or ():
            default = None if optional else inspect.Parameter.empty
            parameters.append(inspect.Parameter(str(name), PARAMETER_KINDS[kind], default=default))
        return inspect.Signature(parameters) if description.get("signature") is not None else None
    except (TypeError, ValueError, KeyError):
        return None


# --- the cases of a check -------------------------------------------------------------------------

MAX_PACKED_EXERCISES = 64  # with their seeds, whose cases are kept as bytes
MAX_KNOWN_REPLIES = 1000  # to one of them
MAX_REPLY_BYTES = 4000  # of a reply that is known again
MAX_TEXT_CHARS = 2200  # of an error's text
KnownReplies = dict[tuple, Outcome]  # by a case's number, a reply's text and its arrays
_packed_cases: dict[tuple[Exercise, int], tuple[list[bytes], KnownReplies]] = {}


def outcomes_from_replies(
    session: ObjectSession, target: int, exercise: Exercise, seed: int
) -> Iterator[Outcome]:
    """Yield the outcome of each case on a submission's object, up to a case that hangs.

    Functions that the cases hand over may be called until the last outcome is there.
    """
    lent = session.lent_functions.count
    try:
        yield from remote_outcomes(session, target, exercise, seed)
    finally:
        session.lent_functions.release_since(lent)


def remote_outcomes(
    session: ObjectSession, target: int, exercise: Exercise, seed: int
) -> Iterator[Outcome]:
    """Yield what ``outcomes_from_replies`` yields, which releases the functions of the cases.

    All cases go out with one request; ``target`` is the object's handle.
    """
    cases = [case for _, case, _ in draw(exercise, seed)]
    names = argument_names(exercise)
    limit = min(exercise.limit * session.limits.stretch, session.limits.call)
    request = {
        "op": "cases",
        "target": target,
        "names": names,
        "forbids": exercise.forbids,
        "seeds": [session.new_seed() for _ in cases] if session.carry_seed else None,
        "careful": session.careful,
    }
    known_replies: KnownReplies | None = None
    for number, case in enumerate(cases):
        try:
            if known_replies is None:
                buffers, known_replies = packed_cases(session, exercise, seed, cases)
                session.send_request(request, buffers, limit)
            # The process ends a case itself after ``limit``; this is for one that cannot.
            reply, arrays, size = session.next_reply(limit + 1, last=number + 1 == len(cases))
            key = reply_key(number, reply, arrays) if size <= MAX_REPLY_BYTES else ()
            outcome = known_replies.get(key)
            if outcome is None:
                decoder = session.open_reply(reply, arrays, size)[1]
                raw_outcome = case_outcome(session, reply, decoder, [*names, *case.kwargs])
                outcome = outcome_of_facts(case, raw_outcome)
                if key and len(known_replies) < MAX_KNOWN_REPLIES:
                    known_replies[key] = outcome
        except TimeUp:
            outcome = Outcome("hung")
        except Exception as error:  # an ended process stays ended: the rest have the same outcome
            outcome = Outcome("raised", error=type(error), text=describe_error(error))
        yield outcome
        if outcome.kind == "hung":
            session.midway = False
            return


def case_outcome(
    session: ObjectSession, reply: Any, decoder: decoding.Decoder, names: list[str]
) -> Outcome:
    """Return the outcome that a reply describes; end the conversation if it describes none.

    ``names`` are the arguments that may be said to have been changed.
    """
    changed_names = reply.get("changed")
    changed = (
        ", ".join(name for name in names if name in changed_names)
        if isinstance(changed_names, list)
        else ""
    )
    kind = reply.get("kind")
    if kind == "hung":
        session.time_up()
        return Outcome("hung", mutated=changed)
    if kind == "raised" and isinstance(reply.get("raised"), dict):
        raised = reply["raised"]
        error_class = decoding.exception_class(raised.get("type"), raised.get("above"))
        error = Unusable if raised.get("unusable") is True else error_class
        text = sent_text(reply, "text", MAX_TEXT_CHARS)
        return Outcome("raised", error=error, text=text, mutated=changed)
    if kind == "value":
        return Outcome("value", session.decode_value(decoder, reply.get("value")), mutated=changed)
    session.end_on_bad_reply("sent no outcome")


def reply_key(number: int, reply: dict[str, Any], arrays: list) -> tuple:
    """Return a key under which the outcome of a reply is cached; empty if it cannot be.

    A process that says the same of the same case has done the same. Replies with handles, errors or
    printed text have meaning in their own process only.
    """
    if (
        reply.keys() != PLAIN_REPLY_FIELDS
        or reply["kind"] != "value"
        or reply["out"]
        or reply["over"]
    ):
        return ()
    text = repr(reply)
    return () if "'o':" in text else (number, text, *map(bytes, arrays))


PLAIN_REPLY_FIELDS = {"kind", "changed", "value", "out", "over", "arrays"}


def packed_cases(
    session: ObjectSession, exercise: Exercise, seed: int, cases: list[Case]
) -> tuple[list[bytes], KnownReplies]:
    """Return the buffers of a request with these cases, and the outcomes of replies known so far.

    The first buffer says what the cases are, the others are their arrays. Both are cached by
    exercise and seed, except where cases hold functions of the checker's, which are lent anew to
    each process.
    """
    key = (exercise, seed)
    if key in _packed_cases:
        return _packed_cases[key]
    functions = session.lent_functions.count
    buffers = [b""]
    messages = [case_as_message(case, session, buffers) for case in cases]
    buffers[0] = json.dumps(messages).encode()
    if functions == session.lent_functions.count:
        if len(_packed_cases) >= MAX_PACKED_EXERCISES:
            _packed_cases.clear()
        _packed_cases[key] = buffers, {}
    return _packed_cases.get(key, (buffers, {}))


def case_as_message(case: Case, session: ObjectSession, buffers: list[bytes]) -> Any:
    """Return a case's form: its caller's name and bound arguments, then the case's arguments.

    Its arrays are appended to ``buffers``.
    """
    encoder = Encoder(session.reference_to)
    encoder.buffers = buffers
    caller, bound = case.use, ()
    if isinstance(caller, partial):
        caller, bound = caller.func, caller.args
    if CALLERS.get(caller.__name__) is not caller:
        raise TypeError(f"{caller.__name__} is none of the CALLERS in attncourse/checks/callers/")
    return encoder.encode([caller.__name__, list(bound), list(case.args), case.kwargs])
