"""Functions that have to hold few numbers at once: hand them blocks, and measure what they make.

Every tensor that torch makes is seen. What is held elsewhere, in NumPy's arrays, in lists or in
buffers made before the call, is not seen one by one, so its total counts. The result of the
measured call is compared, too: an answer that returns less where much would be held is wrong.
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
    """Return the implementation's result on scores that come once, in blocks of ``sizes``."""
    return maximum_and_normaliser(implementation(blocks_of(scores, sizes)))


def maximum_and_normaliser(result: Any) -> tuple[Any, Any]:
    """Return a result of two parts as a tuple; ``Unusable`` for anything else."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Unusable(wrong_type(result, "(maximum, normaliser)"))
    return tuple(result)


def blocks_of(scores: Any, sizes: int | tuple[int, ...]) -> Iterator[Any]:
    """Yield blocks of the scores' last axis, each cut when it is asked for.

    ``sizes`` is the width of all blocks or of one after the other; the last may be narrower.
    """
    start, last = 0, scores.shape[-1]
    widths = iter(sizes) if isinstance(sizes, tuple | list) else iter(lambda: sizes, None)
    while start < last:
        stop = min(start + next(widths), last)
        yield scores[..., start:stop]
        start = stop


def blocks_measured(
    sizes: int | tuple[int, ...], implementation: Callable, scores: Any
) -> dict[str, Any]:
    """Return the result, and whether fewer numbers were held than all blocks have together."""

    def call(scores: Any) -> tuple[Any, Any]:
        """Return the implementation's result on blocks of these scores."""
        return maximum_and_normaliser(implementation(blocks_of(scores, sizes)))

    return call_within_limit(scores.numel(), implementation, call, (scores,))


def call_measured(
    limit: int, implementation: Callable, *args: Any, **kwargs: Any
) -> dict[str, Any]:
    """Return the result of a call, and whether it held fewer than ``limit`` numbers at once."""
    return call_within_limit(limit, implementation, partial(implementation, **kwargs), args)


def call_within_limit(
    limit: int, implementation: Any, call: Callable, args: tuple
) -> dict[str, Any]:
    """Return the result of ``call(*args)``, and two facts on whether it held ``limit`` numbers.

    It is called on the reversed arguments first: then a buffer that the answer keeps between calls
    holds other numbers, and the measured call, which fills it again, changes its checksum.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class LargestTensor(TorchDispatchMode):
        """Inside its ``with`` block, the size of the largest tensor that an operation returns."""

        numbers = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: else torch loads all of its compiler at the first operation."""
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            """Return the operation's result; note its largest tensor's size if none was larger."""
            out = func(*args, **(kwargs or {}))
            tensors = out if isinstance(out, tuple | list) else [out]
            for tensor in tensors:
                if is_tensor(tensor):
                    self.numbers = max(self.numbers, tensor.numel())
            return out

    with LargestTensor():
        torch.zeros(1)  # the first operation that is watched may load more of torch
    call(*(x.flip(tuple(range(x.ndim))) if is_tensor(x) else x for x in args))
    before = buffer_contents(implementation)
    with LargestTensor() as largest_tensor, peak_outside_torch() as peak_bytes:
        result = call(*args)
        elsewhere = peak_bytes() // BYTES_PER_NUMBER
    elsewhere += changed_buffers(before, buffer_contents(implementation))
    if not all(map(is_tensor, result if isinstance(result, tuple) else [result])):
        raise Unusable(wrong_type(result, "a torch tensor"))
    return {
        "the output": result,
        f"no tensor of {limit} numbers or more was made": largest_tensor.numbers < limit,
        f"fewer than {limit} numbers are held in NumPy, in lists or in what was there before": (
            elsewhere < limit
        ),
    }


@contextmanager
def peak_outside_torch() -> Iterator[Callable[[], int]]:
    """Yield a function for the most bytes that Python and NumPy held at once inside the block.

    Bytes that were held before the block do not count.
    """
    already = tracemalloc.is_tracing()
    if not already:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]

    def peak_bytes() -> int:
        """Return the bytes at the peak so far; ``Unusable`` if the answer ended the counting."""
        if not tracemalloc.is_tracing():
            raise Unusable("stopped tracemalloc, which counts here what is held: leave it running")
        return tracemalloc.get_traced_memory()[1] - before

    try:
        yield peak_bytes
    finally:
        if not already:
            tracemalloc.stop()
