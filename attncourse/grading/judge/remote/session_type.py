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
        """The copies of the submission's modules."""

    def use(self, what: str, *args: Any, leaves: tuple = (), **kwargs: Any) -> Any:
        """Use a proxy, the first argument, with the others, and return the result."""

    def ask(
        self, request: dict[str, Any], buffers: list[bytes], limit: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Send a request and return the reply; raise what the submission raised."""

    def request(self, request: dict[str, Any], buffers: list[bytes], limit: float) -> None:
        """Send a request whose replies are fetched one by one."""

    def next_reply(self, limit: float, *, last: bool = True) -> tuple[dict[str, Any], list, float]:
        """Return the next reply as it was sent, with its arrays and its size."""

    def open_reply(
        self, reply: dict[str, Any], arrays: list, size: float, arguments: tuple = ()
    ) -> tuple[dict[str, Any], Decoder]:
        """Return a reply once all is noted that it tells besides its values."""

    def value(self, decoder: Decoder, form: Any) -> Any:
        """Decode a value that was sent."""

    def form_of(self, value: Any) -> dict[str, Any]:
        """Encode a value that has no form of its own for the submission's process."""

    def new_seed(self) -> int:
        """Return a seed for a call that may draw random numbers."""

    def forget_with(self, thing: Any, number: int) -> None:
        """Let the process forget an object once ``thing`` is gone here."""

    def time_up(self) -> TimeUp:
        """Return the exception to raise where the present request did not end in time."""

    def refuse(self, why: str) -> NoReturn:
        """End the conversation over a reply that is none."""
