"""Small cases of chapter 13: a cache of two tokens, three words, draws that are counted."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks import callers
from attncourse.checks.callers.language import call_seeded, tokens_in
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor

DRAWS, SEED = 1000, 3


# --- a cache -------------------------------------------------------------------------------------


def with_old(
    implementation: Callable, query: Any, key: Any, value: Any, old_keys: Any, old_values: Any
) -> Any:
    """Return what comes of a call whose cache is shown in two parts."""
    return implementation(query, key, value, (old_keys, old_values))


def cached(query: tuple, key: tuple, value: tuple, old_keys: tuple, old_values: tuple) -> Case:
    """Return the case of new tokens behind those of a cache."""
    return Case(
        tuple(map(tensor, (query, key, value, old_keys, old_values))),
        use=with_old,
        shown="attend_with_cache(query, key, value, cache=(old_keys, old_values))",
    )


def caches() -> list[Case]:
    """Return cases of ``attend_with_cache``: a new token or two, two before or one."""
    one_key = (((1, 0),), ((1, 2, 0),))
    two_keys = (((1, 0), (0, 1)), ((1, 2, 0), (0, 4, 4)))
    old = (((0, 1), (2, 0)), ((3, 0, 6), (9, 3, 0)))
    first = (((0, 1),), ((3, 0, 6),))
    return [
        cached(((2, 1),), *one_key, *old),
        cached(((1, 0),), *one_key, *old),
        cached(((2, 1), (1, 3)), *two_keys, *first),
        cached(((2, 1), (1, 3)), *two_keys, *old),
        cached(((2, 1), (0, 0)), *two_keys, *old),
    ]


# --- writing -------------------------------------------------------------------------------------


def written(ids: tuple[int, ...], n_new: int) -> Case:
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


def texts() -> list[Case]:
    """Return cases of ``generate``: one token more, or two."""
    starts = ((0, 1), (1, 0), (2, 1), (0, 2), (1, 2))
    return [written(ids, n_new) for n_new in (1, 2) for ids in starts]


def losses() -> list[Case]:
    """Return cases of ``next_token_loss``: four guesses among three words, padding at the end."""
    logits = tensor(((0, 1, 0), (2, 0, 0), (0, 0, 1), (1, 1, 0)))
    return [
        Case((logits, torch.tensor(ids), padding))
        for ids, padding in (((0, 1, 0, 2), 2), ((0, 1, 0, 2), None), ((1, 0, 2, 2), 2))
    ]


# --- draws ---------------------------------------------------------------------------------------


def counted(implementation: Callable, logits: Any, **options: Any) -> Any:
    """Return how often each token comes in so many draws."""
    many = logits.expand(DRAWS, *logits.shape)
    ids = tokens_in(call_seeded(SEED, implementation, many, **options), many)
    return torch.nn.functional.one_hot(ids.long(), logits.shape[-1]).sum(0)


def drawn(logits: tuple, note: str = "", **options: Any) -> Case:
    """Return the case of many draws by the same logits."""
    given = "".join(f", {name}={value}" for name, value in options.items())
    said = f"how often each token came in {DRAWS} draws"
    return Case(
        (tensor(logits),),
        options,
        use=counted,
        note=f"{said}; {note}" if note else said,
        shown=f"sample_token(logits{given})",
    )


def generators() -> Case:
    """Return the case of equal generators, and of others."""
    return Case(
        ((1, 2), torch.zeros(10, 3, dtype=torch.float64)),
        use=callers.drawn_with_generators,
        facts=callers.decided_by_generators,
        shown="sample_token(logits, generator=generator)",
    )


def draws() -> list[Case]:
    """Return cases of ``sample_token``: counts of draws, with a temperature and with filters."""
    return [
        drawn((0, 0, 1, 2)),
        drawn((0, 1, 2, 3), top_k=2),
        drawn((0, 1, 2, 3), temperature=0.5, top_k=3, top_p=0.9),
        drawn((0, 1, 2, 2), temperature=2.0, top_k=3),
        drawn((0, 1, 2, 3), temperature=2.0, top_p=0.7),
        drawn((0, 1, 2, 3), temperature=0.5),
        drawn((0, 1, 2, 3), temperature=0.5, top_p=0.7),
        generators(),
        Case((tensor((((0, 9, 0),), ((9, 0, 0),))),), {"temperature": 0.01}, use=seeded),
    ]


def seeded(implementation: Callable, logits: Any, **options: Any) -> Any:
    """Return the tokens drawn with torch's own numbers from one seed."""
    return call_seeded(SEED, implementation, logits, **options)


CASES = {
    "gpt.attend_with_cache": caches,
    "gpt.generate": texts,
    "gpt.next_token_loss": losses,
    "gpt.sample_token": draws,
}
