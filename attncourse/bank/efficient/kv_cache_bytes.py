"""The exercise ``kv_cache_bytes``: the bytes of a cache of keys and values."""

from attncourse import efficient
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def size_case(rng: Rng, **fixed: int) -> Case:
    """Return a case of the cache of some model."""
    drawn = {
        "n_tokens": int(rng.integers(100, 5000)),
        "n_layers": int(rng.integers(3, 90)),
        "n_kv_heads": int(rng.integers(3, 70)),
        "d_head": int(rng.integers(5, 300)),
    }
    sizes = drawn | fixed
    options = {name: sizes.pop(name) for name in ("bytes_per_number",) if name in sizes}
    return Case(tuple(sizes.values()), options)


BY_HAND = Case((10, 3, 2, 4), note="10 tokens, 3 layers, 2 heads of 4 numbers")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_kv_cache_bytes(
    tokens=lambda n: n,
    layers=lambda n: n,
    heads=lambda n: n,
    width=lambda d, heads: d,
    kinds=2,
    bits=lambda number: number,
    default=2,
    finish=lambda total: total,
):
    """Return ``kv_cache_bytes`` made of decisions."""

    def kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=default):
        numbers = tokens(n_tokens) * layers(n_layers) * heads(n_kv_heads)
        numbers = numbers * width(d_head, n_kv_heads)
        return finish(kinds * numbers * bits(bytes_per_number))

    return kv_cache_bytes


def count_as_1(n):
    return 1


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    efficient.kv_cache_bytes,
    section="Chapter 17, “What a cache weighs”",
    difficulty=1,
    minutes=5,
    criteria=(
        Criterion("keys and values of every token, layer and head", 2).on(
            lambda rng: [BY_HAND, *(size_case(rng) for _ in range(4))]
        ),
        Criterion("numbers of any size in bytes", 1).on(
            lambda rng: [
                size_case(rng, bytes_per_number=4),
                size_case(rng, bytes_per_number=1),
                size_case(rng, bytes_per_number=8),
            ]
        ),
        Criterion("no tokens, one head, long texts", 1).on(
            lambda rng: [
                size_case(rng, n_tokens=0),
                size_case(rng, n_kv_heads=1),
                size_case(rng, n_kv_heads=8, d_head=8),
                size_case(rng, n_tokens=3_000_000),
                once_more(BY_HAND),
            ]
        ),
    ),
    mistakes=made(
        compose_kv_cache_bytes,
        mistake("""keys or values alone
            You count one number for each feature. Keys *and* values are kept: twice as many.
        """).by(kinds=1),
        mistake("""queries too
            You count queries, keys and values. A query is used once and thrown away.
        """).by(kinds=3),
        mistake("""bits
            You count bits. A number of 2 bytes has 16 bits; bytes are asked for.
        """).by(bits=lambda number: 8 * number),
        mistake("""divided by 8
            You divide by 8 as if `bytes_per_number` were bits.""")
        .by(bits=lambda number: number / 8)
        .by(bits=lambda number: number // 8),
        mistake("""numbers and not bytes
            You count numbers. Each takes `bytes_per_number` bytes.""").by(bits=count_as_1),
        mistake("""the same number of bytes, whatever is given
            You take two bytes for each number, or four. `bytes_per_number` says how many.""")
        .by(bits=lambda number: 2)
        .by(bits=lambda number: 4),
        mistake("""another size unless told
            Unless told, a number takes 2 bytes.""")
        .by(default=4)
        .by(default=1)
        .by(default=8),
        mistake("""one layer
            You count one layer. Each has keys and values of its own.""").by(layers=count_as_1),
        mistake("""one head
            You count one head, or divide `d_head` by their number. Each of the `n_kv_heads` has
            keys and values of its own, of `d_head` numbers each.""")
        .by(heads=count_as_1)
        .by(width=lambda d, heads: d // heads),
        mistake("""one feature
            You leave out `d_head`: a key has that many numbers.""").by(width=lambda d, heads: 1),
        mistake("""one token
            You leave out the tokens.""").by(tokens=count_as_1),
        mistake("""pairs of tokens
            You count n². Scores are for pairs of tokens, and nobody keeps them; keys and values are
            for single tokens.""").by(tokens=lambda n: n * n),
        mistake("""megabytes or gigabytes
            You divide to get larger units. Bytes are asked for.""")
        .by(finish=lambda total: total / 1e9)
        .by(
            *(
                {"finish": lambda total, unit=unit: total / unit}
                for unit in (1e3, 1e6, 1024, 2**20, 2**30)
            )
        ),
    ),
)
