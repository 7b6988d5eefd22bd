"""Guesses that are checked, and results of several parts.

A right answer may draw its random numbers in any order, so no single result can be expected. An
answer is called many times instead, and returned are its different results, or roughly how often
each came.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from attncourse.checks.callers.language import call_seeded
from attncourse.checks.trying.compare import wrong_type
from attncourse.checks.trying.outcome import Unusable, is_tensor, plain_tensor


def call_for_parts(
    parts: tuple[str, ...],
    whole_number_parts: tuple[str, ...],
    implementation: Callable,
    *args,
    **kwargs,
) -> dict[str, Any]:
    """Return the parts of the result by name.

    Those in ``whole_number_parts`` come as int64 if their numbers are whole.
    """
    returned = implementation(*args, **kwargs)
    if not isinstance(returned, tuple | list) or len(returned) != len(parts):
        raise Unusable(wrong_type(returned, f"({', '.join(parts)})"))
    pairs = zip(parts, returned, strict=True)
    return {name: as_whole(value) if name in whole_number_parts else value for name, value in pairs}


def call_for_new_list(implementation: Callable, argument: list, *args) -> list:
    """Return the result; ``Unusable`` unless it is a list, and another one than the argument."""
    returned = implementation(argument, *args)
    if not isinstance(returned, list):
        raise Unusable(wrong_type(returned, "a new list"))
    if returned is argument:
        raise Unusable("returned the list that came in, expected a new one")
    return returned


def as_whole(numbers: Any) -> Any:
    """Return a tensor of whole numbers as int64; anything else comes back as it is."""
    if not is_tensor(numbers) or numbers.is_complex() or str(numbers.dtype) == "torch.bool":
        return numbers
    numbers = plain_tensor(numbers)
    return numbers.long() if bool((numbers == numbers.round()).all()) else numbers


def call_with_generator(seed: int, implementation: Callable, *args) -> Any:
    """Return the result of a call with a torch generator of this seed as the last argument."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    return call_seeded(seed, implementation, *args, generator)


FREQUENCY_WORDS = ("rarely", "half of the time", "nearly always")  # share 0, 1/2 and 1, rounded


def outcomes_counted(
    draws: int, counted: bool, seed: int, implementation: Callable, draft: Any, *rows: Any
) -> list[str]:
    """Return the different results of ``draws`` calls, sorted, each as a text of its ids.

    If ``counted``, each is followed by how often it came: the word for the nearest half.
    """

    def results_counted() -> Counter:
        """Return how many of the calls, all with one generator, gave each result."""
        generator = torch.Generator().manual_seed(seed)
        counts_drawn = Counter()
        for _ in range(draws):
            copies = [tensor.clone() for tensor in (draft, *rows)]
            counts_drawn[tuple(ids_in(implementation(*copies, generator)))] += 1
        return counts_drawn

    import torch

    counts = call_seeded(seed, results_counted)
    sorted_counts = sorted(counts.items())
    return [
        f"{list(ids)} {FREQUENCY_WORDS[round(2 * n / draws)]}" if counted else f"{list(ids)}"
        for ids, n in sorted_counts
    ]


def kept_with_generators(
    times: int, seeds: tuple, implementation: Callable, draft: Any, *rows: Any
) -> list[str]:
    """Return, as texts, the ids that ``times`` calls keep with each of four generators.

    They are one of the first seed, another of the same seed, one of the second seed, and the first
    generator again, which goes on where it was. torch's own seed differs for the first two.
    """
    import torch

    def ids_kept(generator: Any, torch_seed: int) -> str:
        """Return the text of the ids of all calls with this generator, under torch's own seed."""

        def text_of_ids() -> str:
            """Return the ids of all calls, each on fresh copies of the tensors."""
            copies = [tensor.clone() for tensor in (draft, *rows)]
            return str([ids_in(implementation(*copies, generator)) for _ in range(times)])

        return call_seeded(torch_seed, text_of_ids)

    first, same_seed, other_seed = (
        torch.Generator().manual_seed(seed) for seed in (seeds[0], *seeds)
    )
    return [ids_kept(first, 1), ids_kept(same_seed, 2), ids_kept(other_seed, 1), ids_kept(first, 1)]


def decided_by_rng(ids_kept: list[str]) -> dict[str, bool]:
    """Return three facts: whether the generator, and nothing else, decides which ids are kept."""
    first, same_seed, other_seed, first_again = ids_kept
    return {
        "equal generators give the same": first == same_seed,
        "other generators give something else": first != other_seed,
        "a generator that goes on gives something else": first != first_again,
    }


def ids_in(ids: Any) -> list[int]:
    """Return the ids as a list; ``Unusable`` where they are no int64 tensor of one axis."""
    ids = plain_tensor(ids) if is_tensor(ids) else ids
    if not is_tensor(ids) or str(ids.dtype) != "torch.int64":
        raise Unusable(wrong_type(ids, "a tensor of ids, int64"))
    if ids.ndim != 1:
        raise Unusable(f"returned shape {tuple(ids.shape)}, expected one axis")
    return ids.tolist()
