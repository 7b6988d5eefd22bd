"""Functions that are to hold little at once: hand them blocks, and watch what they make."""

from collections.abc import Callable, Iterator
from typing import Any

from attncourse.checks.compare import wrong_type
from attncourse.checks.outcome import Unusable, is_tensor


def call_in_blocks(sizes: int | tuple[int, ...], implementation: Callable, scores: Any) -> Any:
    """What the implementation makes of the scores, so many keys at a time, which come once."""
    result = implementation(blocks_of(scores, sizes))
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Unusable(wrong_type(result, "(maximum, normaliser)"))
    return tuple(result)


def blocks_of(scores: Any, sizes: int | tuple[int, ...]) -> Iterator[Any]:
    """The blocks one after the other; each is cut when it is asked for."""
    start, last = 0, scores.shape[-1]
    given = iter(sizes) if isinstance(sizes, tuple | list) else iter(lambda: sizes, None)
    while start < last:
        stop = min(start + next(given), last)
        yield scores[..., start:stop]
        start = stop


def blocks_measured(
    sizes: int | tuple[int, ...], implementation: Callable, scores: Any
) -> dict[str, bool]:
    """Whether any tensor was made that holds as many numbers as all the blocks together."""
    return measured(scores.numel(), lambda: call_in_blocks(sizes, implementation, scores))


def call_measured(
    limit: int, implementation: Callable, *args: Any, **kwargs: Any
) -> dict[str, bool]:
    """Whether a call made any tensor of so many numbers."""
    return measured(limit, lambda: implementation(*args, **kwargs))


def measured(limit: int, call: Callable) -> dict[str, bool]:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        """The most numbers that one tensor of the operations inside holds, masks included."""

        numbers = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, tuple | list) else [out]:
                if is_tensor(tensor):
                    self.numbers = max(self.numbers, tensor.numel())
            return out

    with Largest() as seen:
        result = call()
    if not all(map(is_tensor, result if isinstance(result, tuple) else [result])):
        raise Unusable(wrong_type(result, "a torch tensor"))
    return {f"no tensor of {limit} numbers or more was made": seen.numbers < limit}
