"""Small cases of chapter 13: a cache of two tokens, three words, draws that are counted."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks import callers
from attncourse.checks.callers.language import call_seeded, tokens_in
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor

N_DRAWS, DRAW_SEED = 1000, 3


# --- a cache -------------------------------------------------------------------------------------


def call_with_cache(
    implementation: Callable, query: Any, key: Any, value: Any, old_keys: Any, old_values: Any
) -> Any:
    """Return what comes of a call whose cache is shown in two parts."""
    return implementation(query, key, value, (old_keys, old_values))


def cache_case(query: tuple, key: tuple, value: tuple, old_keys: tuple, old_values: tuple) -> Case:
    """Return the case of new tokens behind those of a cache."""
    return Case(
        tuple(map(tensor, (query, key, value, old_keys, old_values))),
        use=call_with_cache,
        shown="attend_with_cache(query, key, value, cache=(old_keys, old_values))",
    )


def attend_with_cache_cases() -> list[Case]:
    """Return cases of ``attend_with_cache``: a new token or two, two before or one."""
    one_key = (((1, 0),), ((1, 2, 0),))
    two_keys = (((1, 0), (0, 1)), ((1, 2, 0), (0, 4, 4)))
    old = (((0, 1), (2, 0)), ((3, 0, 6), (9, 3, 0)))
    first = (((0, 1),), ((3, 0, 6),))
    return [
        cache_case(((2, 1),), *one_key, *old),
        cache_case(((1, 0),), *one_key, *old),
        cache_case(((2, 1), (1, 3)), *two_keys, *first),
        cache_case(((2, 1), (1, 3)), *two_keys, *old),
        cache_case(((2, 1), (0, 0)), *two_keys, *old),
    ]


# --- writing -------------------------------------------------------------------------------------


def generate_case(ids: tuple[int, ...], n_new: int) -> Case:
    """Return the case of a model of three tokens that reads at most four."""
    weights = {
        "tokens": tensor(((1, 0), (0, 1), (1, 1))),
        "positions": tensor(((1, 1), (1, -1), (-2, 1), (1, 1))),
        "scores": tensor(((1, 2, -1), (3, -1, 1))),
    }
    return Case(
        ("small_model", torch.tensor(ids), n_new),
        weights,
        use=callers.call_on_model,
        note="the model: tanh of the sum of tokens · positions so far, times scores",
        shown=f"generate(model, ids, {n_new}), model.max_length = 4",
    )


def generate_cases() -> list[Case]:
    """Return cases of ``generate``: one token more, or two."""
    starts = ((0, 1), (1, 0), (2, 1), (0, 2), (1, 2))
    return [generate_case(ids, n_new) for n_new in (1, 2) for ids in starts]


def next_token_loss_cases() -> list[Case]:
    """Return cases of ``next_token_loss``: four guesses among three words, padding at the end."""
    logits = tensor(((0, 1, 0), (2, 0, 0), (0, 0, 1), (1, 1, 0)))
    return [
        Case((logits, torch.tensor(ids), padding))
        for ids, padding in (((0, 1, 0, 2), 2), ((0, 1, 0, 2), None), ((1, 0, 2, 2), 2))
    ]


# --- draws ---------------------------------------------------------------------------------------


def count_draws(implementation: Callable, logits: Any, **options: Any) -> Any:
    """Return how often each token comes in so many draws."""
    repeated_logits = logits.expand(N_DRAWS, *logits.shape)
    ids = tokens_in(
        call_seeded(DRAW_SEED, implementation, repeated_logits, **options), repeated_logits
    )
    return torch.nn.functional.one_hot(ids.long(), logits.shape[-1]).sum(0)


def draws_case(logits: tuple, note: str = "", **options: Any) -> Case:
    """Return the case of many draws by the same logits."""
    options_text = "".join(f", {name}={value}" for name, value in options.items())
    counts_note = f"how often each token came in {N_DRAWS} draws"
    return Case(
        (tensor(logits),),
        options,
        use=count_draws,
        note=f"{counts_note}; {note}" if note else counts_note,
        shown=f"sample_token(logits{options_text})",
    )


def token_generators_case() -> Case:
    """Return the case of equal generators, and of others."""
    return Case(
        ((1, 2), torch.zeros(10, 3, dtype=torch.float64)),
        use=callers.drawn_with_generators,
        facts=callers.decided_by_generators,
        shown="sample_token(logits, generator=generator)",
    )


def sample_token_cases() -> list[Case]:
    """Return cases of ``sample_token``: counts of draws, with a temperature and with filters."""
    return [
        draws_case((0, 0, 1, 2)),
        draws_case((0, 1, 2, 3), top_k=2),
        draws_case((0, 1, 2, 3), temperature=0.5, top_k=3, top_p=0.9),
        draws_case((0, 1, 2, 2), temperature=2.0, top_k=3),
        draws_case((0, 1, 2, 3), temperature=2.0, top_p=0.7),
        draws_case((0, 1, 2, 3), temperature=0.5),
        draws_case((0, 1, 2, 3), temperature=0.5, top_p=0.7),
        token_generators_case(),
        Case((tensor((((0, 9, 0),), ((9, 0, 0),))),), {"temperature": 0.01}, use=call_with_seed),
    ]


def call_with_seed(implementation: Callable, logits: Any, **options: Any) -> Any:
    """Return the tokens drawn with torch's own numbers from one seed."""
    return call_seeded(DRAW_SEED, implementation, logits, **options)


CASES = {
    "gpt.attend_with_cache": attend_with_cache_cases,
    "gpt.generate": generate_cases,
    "gpt.next_token_loss": next_token_loss_cases,
    "gpt.sample_token": sample_token_cases,
}
