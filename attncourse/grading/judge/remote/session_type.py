"""The part of a session that proxies and copies of modules use, as a type.

``session.py`` makes both, so neither can import it: it would be a circle.
"""

from typing import Any, NoReturn, Protocol
from weakref import WeakValueDictionary

from attncourse.grading.judge.remote.lent import LentFunctions
from attncourse.grading.judge.wire.decoding import Decoder
from attncourse.grading.limits import Limits
from attncourse.support.alarm import TimeUp


class ObjectSession(Protocol):
    """The part of ``Session`` that a proxy of an object in the submission's process needs."""

    limits: Limits
    lent_functions: LentFunctions
    carry_seed: bool
    careful: bool
    midway: bool
    proxies: WeakValueDictionary[int, Any]

    @property
    def mirrors(self) -> Any:
        """Return the copies of the submission's modules."""

    def use(self, operation: str, /, *args: Any, leaves: tuple = (), **kwargs: Any) -> Any:
        """Use an object of the process, whose proxy is the first argument; return the result."""

    def ask(
        self, request: dict[str, Any], buffers: list[bytes], limit: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Send a request and return its one reply; raise what the submission raised.

        ``limit`` are seconds. ``arguments`` are those of a call, which its reply may name.
        """

    def send_request(self, request: dict[str, Any], buffers: list[bytes], limit: float) -> None:
        """Send a request, whose replies ``next_reply`` returns."""

    def next_reply(self, limit: float, *, last: bool = True) -> tuple[dict[str, Any], list, float]:
        """Return the next reply to the present request, with its arrays and its size in bytes."""

    def open_reply(
        self, reply: dict[str, Any], arrays: list, size: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Return a reply with a decoder for its values, after noting what it tells besides them."""

    def decode_value(self, decoder: Decoder, form: Any) -> Any:
        """Return a value that was sent; end the conversation if it is none."""

    def reference_to(self, value: Any) -> dict[str, Any]:
        """Return the form in which the process is sent what is no plain value, a reference."""

    def new_seed(self) -> int:
        """Return a seed for a call that may draw random numbers."""

    def forget_with(self, thing: Any, number: int) -> None:
        """Have the process forget an object, at a later request, once ``thing`` is gone here."""

    def time_up(self) -> TimeUp:
        """Note that a call did not end in time, and return the exception to raise for that."""

    def end_on_bad_reply(self, why: str) -> NoReturn:
        """End the conversation because of a reply that is none, and raise ``Ended``."""
