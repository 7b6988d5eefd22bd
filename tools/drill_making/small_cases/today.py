"""Small cases of chapter 21: two tokens, one layer or two."""

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor

SIZES = {
    "n_kv_heads": 2, "d_head": 4, "window": 3, "d_latent": 6, "d_turned": 2, "d_state": 20,
}  # fmt: skip


def bytes_of(*layers: str, n: int = 10) -> Case:
    """Return the case of some layers, and of so many tokens."""
    sizes = {name: size for name, size in SIZES.items() if name in needed(layers)}
    return Case(({"layers": [*layers]} | sizes, n), raises=ValueError if n < 1 else None)


def needed(layers: tuple[str, ...]) -> set[str]:
    """Return the names of the sizes that layers of these kinds have, or seem to have."""
    names = {
        "full": {"n_kv_heads", "d_head", "window"},
        "window": {"n_kv_heads", "d_head", "window"},
        "latent": {"d_latent", "d_turned"},
        "state": {"d_state"},
    }
    return {name for kind in layers for name in names[kind]}


def caches() -> list[Case]:
    """Return cases of ``cache_bytes_of``: one kind, two of a kind, two kinds, no tokens."""
    return [
        bytes_of("full"),
        bytes_of("full", "full"),
        bytes_of("window", "full"),
        bytes_of("window", "window"),
        bytes_of("latent", "full"),
        bytes_of("full", "state"),
        bytes_of("window", "state", "full"),
        bytes_of("full", n=0),
        bytes_of("window", n=0),
        bytes_of("state", n=0),
    ]


def in_parts() -> list[Case]:
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


CASES = {"today.cache_bytes_of": caches, "today.absorbed_scores": in_parts}
