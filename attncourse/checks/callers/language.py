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

    ``kind`` is the model's name in messages and not used here. ``choose`` names one of the
    ``CHOICES``; if it is "", the implementation is called without that argument.
    """
    model = small_model(**tensors)
    model.eval()
    if not choose:
        return implementation(model, ids, n_new)

    def choose_tokens(logits: Any) -> Any:
        """Return a token for each row of logits; ``Unusable`` for more rows than sequences."""
        rows, sequences = logits[..., 0].numel(), ids[..., 0].numel()
        if rows > sequences:
            raise Unusable(f"`choose` got {rows} rows of logits for {sequences} sequences")
        return CHOICES[choose](logits)

    return implementation(model, ids, n_new, choose_tokens)


def small_model(tokens: Any, positions: Any, scores: Any) -> Any:
    """Return a causal model: tanh(the sum of tokens · positions up to each place) @ scores.

    It reads as many tokens as there are positions, its ``max_length``, and raises for more.
    """
    from torch import nn

    class SmallModel(nn.Module):
        """A causal model whose weights are the three tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.max_length = len(positions)

        def forward(self, ids: Any) -> Any:
            """Return the logits of the next token at each place, ``(..., n, n_vocab)``."""
            n = ids.shape[-1]
            if not 0 < n <= self.max_length:
                raise ValueError(f"the model reads 1 to {self.max_length} tokens, got {n}")
            seen = (tokens[ids] * positions[:n]).cumsum(-2)  # (..., n, d)
            return seen.tanh() @ scores  # (..., n, n_vocab)

    return SmallModel()


def least_likely(logits: Any) -> Any:
    """Return the least likely token of each row."""
    return logits.argmin(-1)


def second_likeliest(logits: Any) -> Any:
    """Return the second most likely token of each row."""
    return logits.topk(2).indices[..., 1]


def how_many(logits: Any) -> Any:
    """Return how many logits of each row are above 0, as a token: at most the last one.

    An answer that hands over probabilities, all above 0, gets the last token.
    """
    return (logits > 0).sum(-1).clamp(max=logits.shape[-1] - 1)


CHOICES = {
    "the least likely": least_likely,
    "the second most likely": second_likeliest,
    "how many are above 0": how_many,
}


def call_seeded(seed: int, implementation: Callable, *args, **kwargs) -> Any:
    """Return the result with torch's own generator at this seed; it goes on as before after it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone: cases use no other device
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
    """Return how often each token is drawn, in whole ``parts`` of all draws: ``(..., n_vocab)``.

    All are drawn in one call, on ``draws`` copies of the logits along a new first axis. Without
    ``with_generator`` the implementation gets no generator and has to use torch's own.
    """
    import torch

    many = logits.expand(draws, *logits.shape)
    if with_generator:
        options["generator"] = torch.Generator().manual_seed(seed)
    ids = tokens_in(call_seeded(seed, implementation, many, **options), many)
    one_hot = torch.nn.functional.one_hot(ids.long(), logits.shape[-1])
    return (one_hot.sum(0) * parts / draws).round().long()


def drawn_with_generators(implementation: Callable, seeds, logits: Any) -> list[Any]:
    """Return the tokens of six draws, which ``decided_by_generators`` compares.

    Two are drawn without a generator, at two seeds of torch's own; then one with a generator of the
    first seed, one with its equal, one of the second seed, and the first generator's next.
    """
    import torch

    def drawn(generator: Any, torch_seed: int) -> Any:
        """Return the tokens drawn with this generator, under this seed of torch's own."""
        ids = call_seeded(torch_seed, implementation, logits, generator=generator)
        return tokens_in(ids, logits)

    free = [drawn(None, torch_seed=seed) for seed in seeds]
    first, same_seed, other_seed = (
        torch.Generator().manual_seed(seed) for seed in (seeds[0], *seeds)
    )
    order = ((first, 1), (same_seed, 2), (other_seed, 1), (first, 1))
    return [*free, *(drawn(generator, torch_seed) for generator, torch_seed in order)]


def decided_by_generators(ids: list[Any]) -> dict[str, bool]:
    """Return four facts: whether the generator, or torch's own without one, decides the tokens."""
    without_one, without_one_again, first, same_seed, other_seed, first_again = (
        plain_tensor(drawn) for drawn in ids
    )
    return {
        "equal generators draw the same tokens": bool((first == same_seed).all()),
        "other generators draw other tokens": bool((first != other_seed).any()),
        "without one torch's own numbers decide": bool((without_one != without_one_again).any()),
        "a generator that goes on draws other tokens": bool((first != first_again).any()),
    }


def tokens_in(ids: Any, logits: Any) -> Any:
    """Return a copy of the ids that were drawn; ``Unusable`` unless they fit these logits."""
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
    """Return the outputs of attention in steps of ``sizes`` tokens, joined, and the last cache."""
    import torch

    outputs, cache = [], None
    for q, k, v in zip(*(x.split(list(sizes), -2) for x in (query, key, value)), strict=True):
        output, cache = output_and_cache(implementation(q, k, v, cache))
        outputs.append(output)
    return {"the outputs": torch.cat(outputs, -2), "the last cache": tuple(cache or ())}


def attend_with_each_gradient(
    names: tuple[str, ...], places: tuple[int, ...], implementation: Callable, *args: Any
) -> dict[str, Any]:
    """Return output and cache as one vector, and its gradient for one argument at a time.

    ``args``: query, key, value, and then the cached keys and values, if there are any.
    """
    import torch

    def in_one_row(*tensors: Any) -> Any:
        """Return the implementation's output, keys and values, flattened and joined."""
        output, cache = output_and_cache(implementation(*tensors[:3], tuple(tensors[3:]) or None))
        return torch.cat([x.flatten() for x in (output, *cache)])

    results: dict[str, Any] = {}
    for name, place in zip(names, places, strict=True):
        results |= output_and_gradients((name,), (place,), in_one_row, args, {})
    return results


def output_and_cache(returned: Any) -> tuple[Any, Any]:
    """Return output and cache of a result; ``Unusable`` unless it is (output, (keys, values))."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise Unusable(wrong_type(returned, "(output, cache)"))
    output, cache = returned
    if not isinstance(cache, tuple | list) or len(cache) != 2 or not all(map(is_tensor, cache)):
        raise Unusable("returned a cache that is not (keys, values)")
    return output, cache
