"""Small cases of chapter 21: two tokens, one layer or two."""

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor

LAYER_SIZES = {
    "n_kv_heads": 2, "d_head": 4, "window": 3, "d_latent": 6, "d_turned": 2, "d_state": 20,
}  # fmt: skip


def cache_bytes_case(*layers: str, n: int = 10) -> Case:
    """Return the case of some layers, and of so many tokens."""
    sizes = {name: size for name, size in LAYER_SIZES.items() if name in needed_sizes(layers)}
    return Case(({"layers": [*layers]} | sizes, n), raises=ValueError if n < 1 else None)


def needed_sizes(layers: tuple[str, ...]) -> set[str]:
    """Return the names of the sizes that layers of these kinds have, or seem to have."""
    names = {
        "full": {"n_kv_heads", "d_head", "window"},
        "window": {"n_kv_heads", "d_head", "window"},
        "latent": {"d_latent", "d_turned"},
        "state": {"d_state"},
    }
    return {name for kind in layers for name in names[kind]}


def cache_bytes_of_cases() -> list[Case]:
    """Return cases of ``cache_bytes_of``: one kind, two of a kind, two kinds, no tokens."""
    return [
        cache_bytes_case("full"),
        cache_bytes_case("full", "full"),
        cache_bytes_case("window", "full"),
        cache_bytes_case("window", "window"),
        cache_bytes_case("latent", "full"),
        cache_bytes_case("full", "state"),
        cache_bytes_case("window", "state", "full"),
        cache_bytes_case("full", n=0),
        cache_bytes_case("window", n=0),
        cache_bytes_case("state", n=0),
    ]


def absorbed_scores_cases() -> list[Case]:
    """Return cases of ``absorbed_scores``: two heads of one and two features, two tokens."""
    q_content = [[[[1, 0]], [[2, 1]]], [[[0, 1]], [[1, 1]]]]  # (2, 2, 1, 2)
    return [
        Case(
            (
                tensor(q_content),
                tensor([[[[1, 2]], [[0, 1]]], [[[1, 1]], [[2, 0]]]]),
                tensor([[[1, 0], [0, 1], [1, 1]], [[2, 0], [1, 0], [0, 2]]]),  # (2, 3, 2)
                tensor([[[1, 0], [0, 1], [1, 1]], [[0, 1], [1, 0], [2, 0]]]),
                tensor([[[1, 0], [1, 1]], [[0, 1], [2, 0]]]),
            ),
            note="two sequences, two heads, one query, three keys",
        )
    ]


CASES = {
    "today.cache_bytes_of": cache_bytes_of_cases,
    "today.absorbed_scores": absorbed_scores_cases,
}
