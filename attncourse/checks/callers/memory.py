"""Functions that are to hold little at once: hand them blocks, and watch what they make.

Of torch every tensor is seen. What is held elsewhere, in arrays of NumPy's, in lists or in what was
made before the call, is not seen one by one, so it counts together. And what is measured is what is
compared, too: whoever returns something else where there is much to hold has not done with little.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from attncourse.checks.callers.buffers import buffer_contents, changed_buffers
from attncourse.checks.trying.compare import wrong_type
from attncourse.checks.trying.outcome import Unusable, is_tensor

BYTES_PER_NUMBER = 8  # of a number that is held outside of torch


def call_in_blocks(sizes: int | tuple[int, ...], implementation: Callable, scores: Any) -> Any:
    """Return the implementation's result on scores that come once, in blocks of these sizes."""
    return maximum_and_normaliser(implementation(blocks_of(scores, sizes)))


def maximum_and_normaliser(result: Any) -> tuple[Any, Any]:
    """Return a result that is a pair, as a tuple; raise ``Unusable`` for anything else."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Unusable(wrong_type(result, "(maximum, normaliser)"))
    return tuple(result)


def blocks_of(scores: Any, sizes: int | tuple[int, ...]) -> Iterator[Any]:
    """Yield the blocks one after the other; each is cut when it is asked for."""
    start, last = 0, scores.shape[-1]
    widths = iter(sizes) if isinstance(sizes, tuple | list) else iter(lambda: sizes, None)
    while start < last:
        stop = min(start + next(widths), last)
        yield scores[..., start:stop]
        start = stop


def blocks_measured(
    sizes: int | tuple[int, ...], implementation: Callable, scores: Any
) -> dict[str, Any]:
    """Return the result, and whether as many numbers were held as all the blocks have together."""

    def call(scores: Any) -> tuple[Any, Any]:
        return maximum_and_normaliser(implementation(blocks_of(scores, sizes)))

    return call_within_limit(scores.numel(), implementation, call, (scores,))


def call_measured(
    limit: int, implementation: Callable, *args: Any, **kwargs: Any
) -> dict[str, Any]:
    """Return the result, and whether the call made any tensor of so many numbers."""
    return call_within_limit(limit, implementation, partial(implementation, **kwargs), args)


def call_within_limit(
    limit: int, implementation: Any, call: Callable, args: tuple
) -> dict[str, Any]:
    """Return the result of a call, and whether the call held more than ``limit`` numbers at once.

    It is called on other numbers first: what is then in a buffer of its own, this call changes.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        """The most numbers that one tensor of the operations inside holds, masks included."""

        numbers = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: else torch loads all of its compiler at the first operation."""
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            tensors = out if isinstance(out, tuple | list) else [out]
            for tensor in tensors:
                if is_tensor(tensor):
                    self.numbers = max(self.numbers, tensor.numel())
            return out

    with Largest():
        torch.zeros(1)  # the first operation that is watched may load more of torch
    call(*(x.flip(tuple(range(x.ndim))) if is_tensor(x) else x for x in args))
    before = buffer_contents(implementation)
    with Largest() as seen, outside_of_torch() as most:
        result = call(*args)
        elsewhere = most() // BYTES_PER_NUMBER
    elsewhere += changed_buffers(before, buffer_contents(implementation))
    if not all(map(is_tensor, result if isinstance(result, tuple) else [result])):
        raise Unusable(wrong_type(result, "a torch tensor"))
    return {
        "the output": result,
        f"no tensor of {limit} numbers or more was made": seen.numbers < limit,
        f"fewer than {limit} numbers are held in NumPy, in lists or in what was there before": (
            elsewhere < limit
        ),
    }


@contextmanager
def outside_of_torch() -> Iterator[Callable[[], int]]:
    """Tell the most bytes that Python and NumPy have held at once inside the ``with`` block."""
    already = tracemalloc.is_tracing()
    if not already:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]

    def most() -> int:
        if not tracemalloc.is_tracing():
            raise Unusable("stopped tracemalloc, which counts here what is held: leave it running")
        return tracemalloc.get_traced_memory()[1] - before

    try:
        yield most
    finally:
        if not already:
            tracemalloc.stop()
