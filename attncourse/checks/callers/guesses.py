"""Guesses that are checked, and results of several parts.

What a right answer does with given random numbers nobody knows: it may draw them in any order. So
an answer is called many times, and it is told which results come, and how often in whole parts.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from attncourse.checks.callers.language import call_seeded
from attncourse.checks.trying.compare import wrong_type
from attncourse.checks.trying.outcome import Unusable, is_tensor, plain_tensor


def call_for_parts(
    parts: tuple[str, ...], whole: tuple[str, ...], implementation: Callable, *args, **kwargs
) -> dict[str, Any]:
    """Return the results by name; those of ``whole`` as int64, where they hold whole numbers."""
    returned = implementation(*args, **kwargs)
    if not isinstance(returned, tuple | list) or len(returned) != len(parts):
        raise Unusable(wrong_type(returned, f"({', '.join(parts)})"))
    named = zip(parts, returned, strict=True)
    return {name: as_whole(value) if name in whole else value for name, value in named}


def call_for_new_list(implementation: Callable, argument: list, *args) -> list:
    """Return the result, which has to be a list, and another one than the list that came in."""
    returned = implementation(argument, *args)
    if not isinstance(returned, list):
        raise Unusable(wrong_type(returned, "a new list"))
    if returned is argument:
        raise Unusable("returned the list that came in, expected a new one")
    return returned


def as_whole(numbers: Any) -> Any:
    """Return the same numbers as int64; what is no tensor of whole numbers stays as it is."""
    if not is_tensor(numbers) or numbers.is_complex() or str(numbers.dtype) == "torch.bool":
        return numbers
    numbers = plain_tensor(numbers)
    return numbers.long() if bool((numbers == numbers.round()).all()) else numbers


def call_with_generator(seed: int, implementation: Callable, *args) -> Any:
    """Return the result with a generator that begins at this seed as the last argument."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return call_seeded(seed, implementation, *args, generator)


FREQUENCY_WORDS = ("rarely", "half of the time", "nearly always")  # in halves


def outcomes_counted(
    draws: int, counted: bool, seed: int, implementation: Callable, draft: Any, *rows: Any
) -> list[str]:
    """Return which ids come of so many calls, and, where they are counted, how often in halves."""

    def called() -> Counter:
        generator = torch.Generator().manual_seed(seed)
        counts_drawn = Counter()
        for _ in range(draws):
            copies = [tensor.clone() for tensor in (draft, *rows)]
            counts_drawn[tuple(ids_in(implementation(*copies, generator)))] += 1
        return counts_drawn

    import torch

    counts = call_seeded(seed, called)
    sorted_counts = sorted(counts.items())
    return [
        f"{list(ids)} {FREQUENCY_WORDS[round(2 * n / draws)]}" if counted else f"{list(ids)}"
        for ids, n in sorted_counts
    ]


def kept_with_generators(
    times: int, seeds: tuple, implementation: Callable, draft: Any, *rows: Any
) -> list[str]:
    """Return the ids kept by ``times`` calls with each of four generators.

    They are a generator, its equal, another one, and the first again, which goes on.
    """
    import torch

    def ids_kept(generator: Any, torch_seed: int) -> str:
        def called() -> str:
            copies = [tensor.clone() for tensor in (draft, *rows)]
            return str([ids_in(implementation(*copies, generator)) for _ in range(times)])

        return call_seeded(torch_seed, called)

    first, like_it, other = (torch.Generator().manual_seed(seed) for seed in (seeds[0], *seeds))
    return [ids_kept(first, 1), ids_kept(like_it, 2), ids_kept(other, 1), ids_kept(first, 1)]


def decided_by_rng(ids_kept: list[str]) -> dict[str, bool]:
    """Say whether the generator, and nothing else, decides which ids are kept."""
    first, like_it, other, went_on = ids_kept
    return {
        "equal generators give the same": first == like_it,
        "other generators give something else": first != other,
        "a generator that goes on gives something else": first != went_on,
    }


def ids_in(ids: Any) -> list[int]:
    """Return the ids that came back; ``Unusable`` where they are no row of whole numbers."""
    ids = plain_tensor(ids) if is_tensor(ids) else ids
    if not is_tensor(ids) or str(ids.dtype) != "torch.int64":
        raise Unusable(wrong_type(ids, "a tensor of ids, int64"))
    if ids.ndim != 1:
        raise Unusable(f"returned shape {tuple(ids.shape)}, expected one axis")
    return ids.tolist()
