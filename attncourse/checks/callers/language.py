"""Language models: write on with a small one, draw tokens and count them, attend with a cache."""

from collections.abc import Callable
from typing import Any

from attncourse.checks.callers.calls import output_and_gradients
from attncourse.checks.trying.compare import wrong_type
from attncourse.checks.trying.outcome import Unusable, is_tensor, plain_tensor


def call_on_model(
    implementation: Callable, kind: str, ids: Any, n_new: int, choose: str = "", **tensors
) -> Any:
    """Return the ids that the implementation generates with a small model made of these tensors.

    ``kind`` says what the model is called. ``choose`` names one of the ``CHOICES``; without it the
    argument is left out.
    """
    model = small_model(**tensors)
    model.eval()
    if not choose:
        return implementation(model, ids, n_new)

    def chosen(logits: Any) -> Any:
        rows, sequences = logits[..., 0].numel(), ids[..., 0].numel()
        if rows > sequences:
            raise Unusable(f"`choose` got {rows} rows of logits for {sequences} sequences")
        return CHOICES[choose](logits)

    return implementation(model, ids, n_new, chosen)


def small_model(tokens: Any, positions: Any, scores: Any) -> Any:
    """Return a causal model: tanh of the sum of tokens · positions so far, times scores.

    It reads at most as many tokens as there are positions, its ``max_length``.
    """
    from torch import nn

    class SmallModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.max_length = len(positions)

        def forward(self, ids: Any) -> Any:
            n = ids.shape[-1]
            if not 0 < n <= self.max_length:
                raise ValueError(f"the model reads 1 to {self.max_length} tokens, got {n}")
            seen = (tokens[ids] * positions[:n]).cumsum(-2)  # (..., n, d)
            return seen.tanh() @ scores  # (..., n, n_vocab)

    return SmallModel()


def least_likely(logits: Any) -> Any:
    """Return the least likely token."""
    return logits.argmin(-1)


def second_likeliest(logits: Any) -> Any:
    """Return the second most likely token."""
    return logits.topk(2).indices[..., 1]


def how_many(logits: Any) -> Any:
    """Return how many logits are above 0, at most the last token: shares would all be above."""
    return (logits > 0).sum(-1).clamp(max=logits.shape[-1] - 1)


CHOICES = {
    "the least likely": least_likely,
    "the second most likely": second_likeliest,
    "how many are above 0": how_many,
}


def call_seeded(seed: int, implementation: Callable, *args, **kwargs) -> Any:
    """Return the result where torch's own numbers begin at this seed; they go on as before."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # other devices have none to begin
        return implementation(*args, **kwargs)


def shares_drawn(
    implementation: Callable,
    draws: int,
    parts: int,
    seed: int,
    with_generator: bool,
    logits: Any,
    **options,
) -> Any:
    """Return how often each token is drawn, ``(..., n_vocab)``: counts · parts / draws, rounded.

    All are drawn in one call, on ``draws`` copies of the logits as a first batch axis. Without
    ``with_generator`` torch's own is to be used.
    """
    import torch

    many = logits.expand(draws, *logits.shape)
    if with_generator:
        options["generator"] = torch.Generator().manual_seed(seed)
    ids = tokens_in(call_seeded(seed, implementation, many, **options), many)
    drawn = torch.nn.functional.one_hot(ids.long(), logits.shape[-1])
    return (drawn.sum(0) * parts / draws).round().long()


def drawn_with_generators(implementation: Callable, seeds, logits: Any) -> list[Any]:
    """Return the tokens drawn with generators and without, for ``decided_by_generators``."""
    import torch

    def drawn(generator: Any, others: int) -> Any:
        return tokens_in(call_seeded(others, implementation, logits, generator=generator), logits)

    free = [drawn(None, others=seed) for seed in seeds]
    first, like_it, other = (torch.Generator().manual_seed(seed) for seed in (seeds[0], *seeds))
    order = ((first, 1), (like_it, 2), (other, 1), (first, 1))
    return [*free, *(drawn(generator, others) for generator, others in order)]


def decided_by_generators(ids: list[Any]) -> dict[str, bool]:
    """Say whether the generator, and nothing else, decides which tokens are drawn."""
    free, again, first, like_it, other, went_on = (plain_tensor(drawn) for drawn in ids)
    return {
        "equal generators draw the same tokens": bool((first == like_it).all()),
        "other generators draw other tokens": bool((first != other).any()),
        "without one torch's own numbers decide": bool((free != again).any()),
        "a generator that goes on draws other tokens": bool((first != went_on).any()),
    }


def tokens_in(ids: Any, logits: Any) -> Any:
    """Return the ids that were drawn; ``Unusable`` where they are none for these logits."""
    ids = plain_tensor(ids) if is_tensor(ids) else ids
    if not is_tensor(ids) or ids.is_floating_point():
        raise Unusable(wrong_type(ids, "a tensor of ids"))
    if ids.shape != logits.shape[:-1]:
        raise Unusable(f"returned shape {tuple(ids.shape)}, expected {tuple(logits.shape[:-1])}")
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < logits.shape[-1]:
        outside = int(ids.max()) if int(ids.min()) >= 0 else int(ids.min())
        raise Unusable(f"drew the token {outside} of {logits.shape[-1]}")
    return ids.clone()  # it may be one tensor that each call fills anew


def attend_in_steps(implementation: Callable, sizes, query: Any, key: Any, value: Any) -> Any:
    """Return the outputs where so many tokens come at a time, with the cache of the last step."""
    import torch

    outputs, cache = [], None
    for q, k, v in zip(*(x.split(list(sizes), -2) for x in (query, key, value)), strict=True):
        output, cache = output_and_cache(implementation(q, k, v, cache))
        outputs.append(output)
    return {"the outputs": torch.cat(outputs, -2), "the last cache": tuple(cache or ())}


def attend_with_each_gradient(
    names: tuple[str, ...], places: tuple[int, ...], implementation: Callable, *args: Any
) -> dict[str, Any]:
    """Return output and cache in one row, and their gradient for one argument at a time.

    Arguments: query, key, value, and then the cached keys and values, if there are any.
    """
    import torch

    def in_one_row(*tensors: Any) -> Any:
        output, cache = output_and_cache(implementation(*tensors[:3], tuple(tensors[3:]) or None))
        return torch.cat([x.flatten() for x in (output, *cache)])

    results: dict[str, Any] = {}
    for name, place in zip(names, places, strict=True):
        results |= output_and_gradients((name,), (place,), in_one_row, args, {})
    return results


def output_and_cache(returned: Any) -> tuple[Any, Any]:
    """Return an output and a cache; ``Unusable`` for what is not (output, (keys, values))."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise Unusable(wrong_type(returned, "(output, cache)"))
    output, cache = returned
    if not isinstance(cache, tuple | list) or len(cache) != 2 or not all(map(is_tensor, cache)):
        raise Unusable("returned a cache that is not (keys, values)")
    return output, cache
