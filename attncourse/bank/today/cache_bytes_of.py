"""The exercise ``cache_bytes_of``: the bytes that a model keeps of a text."""

from typing import Any

from attncourse import today
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def config_of(rng: Rng, layers: list[str], **fixed: int) -> dict[str, Any]:
    """Return a model with these layers, with sizes of which no sum is another's product."""
    drawn = {
        "n_kv_heads": int(rng.integers(3, 20)),
        "d_head": int(rng.integers(21, 90)),
        "window": int(rng.integers(100, 300)),
        "d_latent": int(rng.integers(200, 600)),
        "d_turned": int(rng.integers(30, 90)),
        "d_state": int(rng.integers(1000, 9000)),
    }
    return {"layers": layers} | drawn | fixed


def long_text_cases(*models: tuple[list[str], str]):
    """Return what makes cases of texts longer than any window, for models of these layers."""

    def cases(rng: Rng) -> list[Case]:
        cases_of_models = []
        for layers, note in models:
            n_tokens = int(rng.integers(400, 5000))
            cases_of_models.append(Case((config_of(rng, list(layers)), n_tokens), note=note))
        return cases_of_models

    return cases


SMALL_SIZES = {
    "n_kv_heads": 2, "d_head": 4, "window": 3, "d_latent": 6, "d_turned": 2, "d_state": 20,
}  # fmt: skip
BY_HAND = Case(
    ({"layers": ["full", "full", "full"], **SMALL_SIZES}, 10), note="10 tokens, 3 layers of 2 heads"
)
FIVE_LAYERS = {"layers": ["window", "full", "latent", "state", "window"], **SMALL_SIZES}
MIXED_BY_HAND = Case((FIVE_LAYERS, 10), note="a layer of each kind, and a second window")


def short_text_cases(rng: Rng) -> list[Case]:
    windows = config_of(rng, ["window"] * 3)
    within = int(rng.integers(20, 90))
    return [
        Case((windows, within), note="a text shorter than the window"),
        Case((windows, windows["window"]), note="a text as long as the window"),
        Case((config_of(rng, ["window", "full"], window=1), 1), note="one token"),
    ]


def number_size_cases(rng: Rng) -> list[Case]:
    every = ["full", "window", "latent", "state"]
    n_tokens = int(rng.integers(400, 5000))
    return [
        Case((config_of(rng, every), n_tokens), {"bytes_per_number": 1}),
        Case((config_of(rng, every), n_tokens), {"bytes_per_number": 4}),
        Case((config_of(rng, ["state", "latent"]), n_tokens, 2), note="two bytes, said"),
        once_more(BY_HAND),
    ]


def refused_text(n_tokens: int) -> Case:
    return Case(
        (FIVE_LAYERS, n_tokens), note=f"{n_tokens} tokens".replace("-", "−"), raises=ValueError
    )


# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_no_tokens(n_tokens):
    if n_tokens < 1:
        raise ValueError("expected one token or more")
    return n_tokens


def heads_of(config):
    return config["n_kv_heads"] * config["d_head"]


def cut_to_window(n_tokens, window):
    return min(n_tokens, window)


@composition
def compose_cache_bytes_of(
    refuse=refuse_no_tokens,
    layers=as_it_is,
    pair=2,
    width=heads_of,
    full=lambda numbers, n, config: numbers * n,
    window=cut_to_window,
    latent=lambda n, config: n * (config["d_latent"] + config["d_turned"]),
    state=lambda n, config: config["d_state"],
    size=lambda numbers, size: numbers * size,
):
    """Return ``cache_bytes_of`` made of decisions."""

    def cache_bytes_of(config, n_tokens, bytes_per_number=2):
        n, numbers = refuse(n_tokens), 0
        for kind in layers(config["layers"]):
            if kind == "full":
                numbers += full(pair * width(config), n, config)
            elif kind == "window":
                numbers += pair * width(config) * window(n, config["window"])
            elif kind == "latent":
                numbers += latent(n, config)
            else:
                numbers += state(n, config)
        return size(numbers, bytes_per_number)

    return cache_bytes_of


def repeat_first_layer(layers):
    """Return as many layers of the first one's kind."""
    return [layers[0]] * len(layers)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    today.cache_bytes_of,
    section="Chapter 21, “What a token costs”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("full layers", 1).on(
            lambda rng: [
                BY_HAND,
                *long_text_cases((["full"] * 4, "four layers"), (["full"], "one layer"))(rng),
            ]
        ),
        Criterion("a window keeps at most that many tokens", 2).on(
            lambda rng: [
                *long_text_cases((["window"] * 3, "a long text"))(rng),
                *short_text_cases(rng),
            ]
        ),
        Criterion("a latent and a turned key a token", 2).on(
            long_text_cases((["latent"] * 5, "five layers"), (["latent"], "one layer"))
        ),
        Criterion("a state counts once, however long the text", 1).on(
            long_text_cases((["state"] * 3, "three layers"), (["state"], "one layer"))
        ),
        Criterion("layers of several kinds", 1).on(
            lambda rng: [
                MIXED_BY_HAND,
                *long_text_cases(
                    (["window", "window", "full"] * 2, "two windows to one"),
                    (["state", "state", "state", "full"], "three states to one"),
                    (["full", "latent", "window"], "three kinds"),
                )(rng),
            ]
        ),
        Criterion("other bytes a number", 1).on(number_size_cases),
        Criterion("no tokens, or fewer: ValueError", 1).on(
            lambda rng: [refused_text(0), refused_text(-1), refused_text(-400)]
        ),
        unchanged(),
    ),
    mistakes=made(
        compose_cache_bytes_of,
        mistake("""every layer counts as full
            You count 2 · n_kv_heads · d_head numbers a token for every layer. Look at its kind:
            `for kind in config["layers"]`.""").by(
            window=lambda n, window: n,
            latent=lambda n, config: 2 * n * heads_of(config),
            state=lambda n, config: 2 * n * heads_of(config),
        ),
        mistake("""every layer counts as the first
            You look at the first layer's kind and multiply by how many there are. Each has its own.
        """).by(layers=repeat_first_layer),
        mistake("""one layer alone
            You count the first or the last layer. Add up over all of them.""")
        .by(layers=lambda layers: layers[:1])
        .by(layers=lambda layers: layers[-1:]),
        mistake("""each kind counts once
            You count each kind of layer once, however many there are of it. Go through the list
            itself, not through a set of it.""").by(
            layers=lambda layers: list(dict.fromkeys(layers))
        ),
        mistake("""the windows keep the whole text
            You count every token for a layer with a window. It keeps the last `window` tokens and
            forgets the others: `min(n_tokens, window)`.""").by(window=lambda n, window: n),
        mistake("""a window counts whole in a short text
            You count `window` tokens where the text is shorter. There is no more to keep than there
            are tokens: `min(n_tokens, window)`.""").by(window=lambda n, window: window),
        mistake("""the longer of text and window
            You take the larger of the two: `max`. It is the smaller.""").by(window=max),
        mistake("""keys or values alone
            You count the keys and forget the values. Of a full layer and of a window two vectors
            are kept for each token and head.""").by(pair=1),
        mistake("""the windows keep keys alone
            You count two vectors for full layers and one for windows. A window keeps keys and
            values, too.""").by(window=lambda n, window: min(n, window) / 2),
        mistake("""keys and values of a latent
            You count the latent twice, or once for each head. Keys and values are made of it, for
            all heads: d_latent + d_turned numbers a token.""")
        .by(latent=lambda n, config: 2 * n * (config["d_latent"] + config["d_turned"]))
        .by(latent=lambda n, config: n * (2 * config["d_latent"] + config["d_turned"]))
        .by(
            latent=lambda n, config: (
                n * config["n_kv_heads"] * (config["d_latent"] + config["d_turned"])
            )
        ),
        mistake("""a turned key for each head
            You count the turned key once for each head. One serves all of them.""").by(
            latent=lambda n, config: (
                n * (config["d_latent"] + config["n_kv_heads"] * config["d_turned"])
            )
        ),
        mistake("""the turned key is forgotten
            You count the latent alone. Beside it stands the key that is turned by its position,
            d_turned numbers.""").by(latent=lambda n, config: n * config["d_latent"]),
        mistake("""latents are counted as keys and values
            You count 2 · n_kv_heads · d_head numbers for a latent layer. It keeps none of those
            keys and values: d_latent + d_turned numbers a token.""").by(
            latent=lambda n, config: 2 * n * heads_of(config)
        ),
        mistake("""a state for each token
            You multiply d_state by the tokens. The state is one for the whole text.""").by(
            state=lambda n, config: n * config["d_state"]
        ),
        mistake("""a state for each head
            You multiply d_state by the heads, or by two. It counts all numbers of the layer.""")
        .by(state=lambda n, config: config["n_kv_heads"] * config["d_state"])
        .by(state=lambda n, config: 2 * config["d_state"]),
        mistake("""the states are forgotten
            You count nothing for a layer with a state. It keeps d_state numbers.""").by(
            state=lambda n, config: 0
        ),
        mistake("""the heads are forgotten
            You count one head. Each key/value head keeps a vector of d_head numbers.""").by(
            width=lambda config: config["d_head"]
        ),
        mistake("""heads and width are added
            You add n_kv_heads and d_head. Each head has d_head numbers: multiply.""").by(
            width=lambda config: config["n_kv_heads"] + config["d_head"]
        ),
        mistake("""numbers, not bytes
            You return how many numbers are kept. Each takes `bytes_per_number` bytes.""").by(
            size=lambda numbers, size: numbers
        ),
        mistake("""always two bytes
            You multiply by 2 whatever `bytes_per_number` says.""").by(
            size=lambda numbers, size: 2 * numbers
        ),
        mistake("""bits, not bytes
            You return bits. A byte has eight of them.""").by(
            size=lambda numbers, size: 8 * size * numbers
        ),
        mistake("""larger units than bytes
            You return kilobytes or megabytes. Return bytes.""")
        .by(size=lambda numbers, size: numbers * size / 1024)
        .by(size=lambda numbers, size: numbers * size / 1000)
        .by(size=lambda numbers, size: numbers * size / 2**20)
        .by(size=lambda numbers, size: numbers * size / 1e6),
        mistake("""bytes for one token
            You divide by the tokens. Asked for is what the whole text takes.""").by(
            full=lambda numbers, n, config: numbers,
            window=lambda n, window: min(n, window) / n,
            latent=lambda n, config: config["d_latent"] + config["d_turned"],
            state=lambda n, config: config["d_state"] / n,
        ),
        mistake("""a full layer forgets, too
            You count at most `window` tokens for full layers as well. They keep the whole text.
        """).by(full=lambda numbers, n, config: numbers * min(n, config["window"])),
        mistake("""nothing is refused
            A text of no token, or of a negative number, is a slip of whoever asks: raise a
            `ValueError`.""")
        .by(refuse=as_it_is)
        .by(refuse=lambda n: max(n, 0))
        .by(refuse=abs),
        mistake("""no tokens are let through
            You refuse negative numbers and let 0 through. A text has one token or more.""").by(
            refuse=lambda n: n if n == 0 else refuse_no_tokens(n)
        ),
        mistake("""one token is refused
            A text may have one token.""").by(refuse=lambda n: refuse_no_tokens(n - 1) and n),
    ),
)
