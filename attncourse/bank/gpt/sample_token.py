"""The exercise ``sample_token``: a token drawn for each row of logits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from attncourse import gpt
from attncourse.bank.gpt.cases import FILTER_ROWS, LOGITS_BY_HAND, ROWS, SEVEN_TOKENS, FilteredTable
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, Drawn, Row, once_more
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

MANY_ROWS = SEVEN_TOKENS.but(batch=(53,))  # of which one draw or another will go wrong

# A right answer gets a share rounded to another sixth once in 700,000 verdicts, and one that draws
# row by row is judged within a second.
N_DRAWS, N_PARTS = 1024, 6


@dataclass(frozen=True)
class SampledTable(FilteredTable):
    """A ``FilteredTable`` that seeds torch's own random numbers, so that wrong answers repeat."""

    def case(self, rng: Rng, row: Row) -> Case:
        return replace(super().case(rng, row), use=seeded(int(rng.integers(1 << 30))))


def seeded(seed: int) -> Callable:
    return partial(callers.call_seeded, seed)


CASES = SampledTable()
BY_HAND = Case(
    (LOGITS_BY_HAND,), {"temperature": 0}, use=seeded(0), note="shares 0.1, 0.5, 0.15, 0.25"
)


def drawn_case(
    rng: Rng,
    sixths: Sequence[float],
    cut: Sequence[float] = (),
    *,
    batch: int = 0,
    seeded: bool = True,
    note: str = "",
    **options: Any,
) -> Case:
    """Return a case of logits, drawn in these sixths once they are divided and cut.

    ``cut`` says how likely, in sixths too, those are that a filter takes away.
    """

    def one_row() -> torch.Tensor:
        shares = rng.permutation([*sixths, *cut]).astype(float)
        shift = rng.choice([-3, 3]) + rng.uniform(-0.5, 0.5)  # logits themselves are no such shares
        return tensor(options.get("temperature", 1.0) * (np.log(shares) + shift))

    logits = torch.stack([one_row() for _ in range(batch)]) if batch else one_row()
    seed = int(rng.integers(1 << 30))
    options_text = ", ".join(f"{name}={value}" for name, value in options.items())
    counting = f"how often each token came in {N_DRAWS} draws, in sixths"
    return Case(
        (N_DRAWS, N_PARTS, seed, seeded, logits),
        options,
        use=callers.shares_drawn,
        note=f"{counting}; {note}" if note else counting,
        shown=f"sample_token(logits{', ' if options_text else ''}{options_text})",
    )


THIRTY_UNLIKELY, THIRTY_NEARLY_0 = (0.1,) * 30, (1e-9,) * 30


def generator_cases(rng: Rng) -> list[Case]:
    """Return the case of fifty rows, in which two generators agree by a chance of (1/101)⁵⁰."""
    seeds = tuple(int(seed) for seed in rng.integers(1 << 30, size=2))
    case = Case(
        (seeds, torch.zeros(50, 101, dtype=torch.float64)),
        use=callers.drawn_with_generators,
        facts=callers.decided_by_generators,
        shown="sample_token(logits, generator=generator)",
    )
    return [case]


ONE_POSSIBLE_ID = Drawn(
    "... n_vocab",
    lambda rng, shape: (
        np.where(np.arange(shape[-1]) == shape[-1] - 2, 0.0, -np.inf) + np.zeros(shape)
    ),
)

# --- decisions and mistakes ----------------------------------------------------------------------


def flat_draw(shares, generator):
    rows = shares.reshape(-1, shares.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).reshape(shares.shape[:-1])


def likeliest_at_0(logits, temperature):
    """Return the likeliest token where temperature is 0; None elsewhere."""
    return logits.argmax(-1) if temperature == 0 else None


def random_like(x, draw: Callable, generator):
    """Return random numbers in the shape of x."""
    return draw(x.shape, generator=generator, dtype=x.dtype)


def argmax_with_noise(noise: Callable) -> Callable:
    """Return a ``draw``: the id of the largest logit once such noise is added."""
    return lambda logits, generator: (logits + random_like(logits, noise, generator)).argmax(-1)


@composition
def compose_sample_token(
    greedy=likeliest_at_0,
    divide=lambda logits, temperature: logits / temperature,
    cut=gpt.filter_logits,
    early=None,
    logits_drawn_from=lambda filtered, logits: filtered,
    shares=lambda logits: logits.softmax(-1),
    draw=flat_draw,
    late=lambda ids, logits, k, p: ids,
    finish=lambda ids: ids,
):
    """Return ``sample_token`` made of decisions.

    ``early`` cuts before the logits are divided. The shares drawn from are those of
    ``logits_drawn_from(filtered, logits)``.
    """

    def sample_token(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        best = greedy(logits, temperature)
        if best is not None:
            return finish(best)
        if early is not None:
            logits = early(logits, top_k, top_p)
        divided = divide(logits, temperature)
        filtered = logits_drawn_from(cut(divided, top_k, top_p), logits)
        return finish(late(draw(shares(filtered), generator), divided, top_k, top_p))

    return sample_token


def unfiltered(logits, top_k, top_p):
    return logits


def filter_undivided(logits, top_k, top_p):
    return gpt.filter_logits(logits, top_k, top_p)


def filter_top_k_only(logits, top_k, top_p):
    return gpt.filter_logits(logits, top_k)


def filter_top_p_only(logits, top_k, top_p):
    return gpt.filter_logits(logits, None, top_p)


def likeliest_if_filtered_out(ids, logits, k, p):
    """Return the ids, the likeliest in place of one that the filters do not allow."""
    filtered = gpt.filter_logits(logits, k, p).gather(-1, ids[..., None]).squeeze(-1)
    return ids.where(filtered > -math.inf, logits.argmax(-1))


def id_0_if_filtered_out(ids, logits, k, p):
    filtered = gpt.filter_logits(logits, k, p).gather(-1, ids[..., None]).squeeze(-1)
    return ids.where(filtered > -math.inf, 0)


def draw_from_seed_0(shares, generator):
    with torch.random.fork_rng(devices=[]):  # a check leaves torch's own numbers alone
        torch.manual_seed(0)
        return flat_draw(shares, generator)


def one_random_number_for_all(shares, generator):
    drawn = torch.rand(1, generator=generator, dtype=shares.dtype)
    return (shares.cumsum(-1) < drawn).sum(-1).clamp(max=shares.shape[-1] - 1)


def one_draw_for_all(shares, generator):
    first = shares.reshape(-1, shares.shape[-1])[0]
    return torch.multinomial(first, 1, generator=generator).expand(shares.shape[:-1])


def at_most_two_axes(shares, generator):
    """Return a draw by ``multinomial``, which takes two axes at most."""
    return torch.multinomial(shares, 1, generator=generator).squeeze(-1)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    gpt.sample_token,
    section="Chapter 13, “Which token to take”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion("temperature 0 is the likeliest token", 1).on(
            BY_HAND,
            SEVEN_TOKENS.but(arguments={"temperature": 0.0}),
            ROWS.but(arguments={"temperature": 0}),
            ROWS.but(arguments={"temperature": 0, "top_k": 3, "top_p": 0.8}),
            once_more(BY_HAND),
        ),
        CASES.criterion("where one token alone may come, it comes", 1).on(
            MANY_ROWS.but(arguments={"top_k": 1}, note="one token stays"),
            MANY_ROWS.but(arguments={"top_p": 1e-6}, note="one token stays"),
            MANY_ROWS.but(arguments={"logits": ONE_POSSIBLE_ID}, note="all but one are −∞"),
        ),
        CASES.criterion("so it does in batches, large and small logits, float32", 1).on(
            *(
                table_row.but(arguments={"logits": ONE_POSSIBLE_ID, "temperature": 0.7})
                for table_row in FILTER_ROWS.batches
            ),
            *(table_row.but(arguments={"top_k": 1}) for table_row in FILTER_ROWS.batches),
            *(table_row.but(arguments={"top_k": 1}) for table_row in FILTER_ROWS.numbers),
            ROWS.but(factor=1e6, note="logits in the millions"),
        ),
        Criterion("tokens come as often as the softmax says", 2).on(
            lambda rng: [
                drawn_case(rng, (3, 2, 1)),
                drawn_case(rng, (2, 2, 1, 1)),
                drawn_case(rng, (3, 1, 1, 1), batch=3, note="three rows"),
                drawn_case(rng, (4, 1, 1), seeded=False, note="no generator"),
                # One token against many: another noise than the softmax's, or a little of all
                # tokens beside it, gives it other sixths.
                drawn_case(rng, (3, *THIRTY_UNLIKELY), note="31 tokens"),
                drawn_case(rng, (6, *THIRTY_NEARLY_0), note="31 tokens, one for certain"),
            ]
        ),
        Criterion("logits are divided by the temperature", 2).on(
            lambda rng: [
                drawn_case(rng, (3, 2, 1), temperature=2.0),
                drawn_case(rng, (4, 1, 1), temperature=0.5),
                drawn_case(rng, (3, 2, 1), batch=2, temperature=3.0),
                drawn_case(rng, (3, *THIRTY_UNLIKELY), temperature=2.0),
                drawn_case(rng, (6, *THIRTY_NEARLY_0), temperature=3.0),
            ]
        ),
        Criterion("filters cut before the draw, after the temperature", 3).on(
            lambda rng: [
                drawn_case(rng, (3, 2, 1), (0.9, 0.8), top_k=3),
                drawn_case(rng, (4, 2), (1.5, 1), top_k=2),
                drawn_case(rng, (4, 2), (1, 0.5), top_p=0.7),
                drawn_case(rng, (4, 2), (1.5, 1), temperature=2.0, top_p=0.6),
                drawn_case(rng, (4, 2), (1.5, 1), temperature=0.5, top_k=3, top_p=0.77),
                drawn_case(rng, (3, 1, 1, 1), (0.5, 0.4), batch=2, top_k=4),
                drawn_case(rng, (3, *THIRTY_UNLIKELY), (0.05, 0.04), top_k=31),
                drawn_case(rng, (6, *THIRTY_NEARLY_0), (1e-10, 1e-10), top_k=31),
            ]
        ),
        Criterion("the generator decides", 1).on(generator_cases),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("generator given", "The counts give one, made beside the answer from a seed."),
    ),
    mistakes=made(
        compose_sample_token,
        mistake("""the filters come after the draw
            You draw from all tokens and repair what the filters forbid. The share of what was cut
            then goes to one token. Cut first, and the softmax shares out what is left.""")
        .by(cut=unfiltered, late=likeliest_if_filtered_out)
        .by(cut=unfiltered, late=id_0_if_filtered_out),
        mistake("""a filter is ignored
            You draw from all tokens, or use one filter of the two. Hand top_k *and* top_p to
            `filter_logits` before the softmax.""")
        .by(cut=unfiltered)
        .by(cut=filter_top_k_only)
        .by(cut=filter_top_p_only),
        mistake("""the temperature comes after the filters
            You cut first and divide then. The temperature changes the shares, and top-p counts
            shares: divide first.""").by(early=filter_undivided, cut=unfiltered),
        mistake("""the temperature is ignored
            The temperature has no effect. Divide the *logits* by it: shares divided by it are
            normalised back.""").by(divide=lambda logits, temperature: logits),
        mistake("""drawn without the temperature
            The filters see logits that are divided by the temperature, and the draw does not. The
            largest of `(logits + noise) / temperature` is that of `logits + noise`: divide first,
            then draw from the softmax, or add the noise, of what is left.
        """).by(
            logits_drawn_from=lambda filtered, logits: logits.masked_fill(
                filtered == -math.inf, -math.inf
            )
        ),
        mistake("""a power of the temperature
            You divide by the temperature's square or root. The logits are divided by it as it is.
        """)
        .by(divide=lambda logits, temperature: logits / temperature**2)
        .by(divide=lambda logits, temperature: logits / temperature**0.5),
        mistake("""a power of the shares
            You raise the shares to a power before you draw, which makes them more or less equal.
            That is what the temperature does; draw from the softmax as it is.
        """)
        .by(shares=lambda logits: logits.softmax(-1) ** 2)
        .by(shares=lambda logits: logits.softmax(-1) ** 0.5),
        mistake("""noise that is not the softmax's
            You add random numbers to the logits and take the largest. That draws from the softmax
            if the numbers are −ln(−ln u), u from 0 to 1 (Gumbel's), and from something else if they
            are normal or uniform. Draw with `torch.multinomial`.
        """)
        .by(shares=lambda logits: logits, draw=argmax_with_noise(torch.randn))
        .by(shares=lambda logits: logits, draw=argmax_with_noise(torch.rand))
        .by(
            draw=lambda shares, generator: (
                shares * random_like(shares, torch.rand, generator)
            ).argmax(-1)
        ),
        mistake("""multiplied by the temperature
            You multiply the logits by the temperature. A high temperature is to make the shares
            more equal: divide.""").by(divide=lambda logits, temperature: logits * temperature),
        mistake("""a softmax of the shares
            You take the softmax of shares, which evens them out. Divide the logits by the
            temperature, cut them, and take the only softmax then.""")
        .by(divide=lambda logits, temperature: logits.softmax(-1) / temperature)
        .by(divide=lambda logits, temperature: (logits / temperature).softmax(-1)),
        mistake("""temperature 0 divides by 0
            Logits divided by 0 are infinite, and their softmax is NaN; without the division you
            draw as at temperature 1. Temperature 0 means the likeliest token:
            `logits.argmax(-1)`.""")
        .by(greedy=lambda logits, temperature: None)
        .by(
            greedy=lambda logits, temperature: None,
            divide=lambda logits, t: logits if t == 0 else logits / t,
        ),
        mistake("""always the likeliest token
            You take the likeliest token at every temperature. Draw from the shares:
            `torch.multinomial`.""").by(draw=lambda shares, generator: shares.argmax(-1)),
        mistake("""all tokens are equally likely
            You draw among the tokens that are left without looking at their shares.
        """).by(shares=lambda logits: (logits > -math.inf).double()),
        mistake("""logits in place of shares
            `torch.multinomial` takes shares, and logits may be negative. Take the softmax
            first.""")
        .by(shares=lambda logits: logits)
        .by(shares=lambda logits: logits.clamp(min=0))
        .by(shares=torch.abs),
        mistake("""exp overflows
            exp of a large logit is infinite, and the draw fails. `softmax` subtracts the largest
            first.""").by(shares=torch.exp),
        mistake("""one draw for all rows
            Every row gets the same draw, so that equal rows get the same token. Draw for each row
            by itself.""")
        .by(draw=one_draw_for_all)
        .by(draw=one_random_number_for_all),
        mistake("""one row alone
            You take the first of the tokens that were drawn, or one number. Each row has its own:
            the ids have the shape (...), `squeeze(-1)` in place of `[0]` or `.item()`.""")
        .by(draw=lambda shares, generator: torch.multinomial(shares, 1, generator=generator)[0])
        .by(
            draw=lambda shares, generator: torch.tensor(
                torch.multinomial(shares, 1, generator=generator).item()
            )
        )
        .by(
            draw=lambda shares, generator: flat_draw(
                shares.reshape(-1, shares.shape[-1])[0], generator
            )
        ),
        mistake("""multinomial takes two axes at most
            `torch.multinomial` knows one row or a matrix of rows. Flatten the batch axes before,
            and give the ids the shape (...) after.""").by(draw=at_most_two_axes),
        mistake("""an axis of length 1 is left
            You return (..., 1). One token for each row has shape (...): `squeeze(-1)`.""")
        .by(finish=lambda ids: ids[..., None])
        .by(draw=lambda shares, generator: flat_draw(shares, generator)[..., None]),
        mistake("""the generator is not used
            Equal generators have to draw the same tokens. Hand `generator` on to the draw.
        """).by(draw=lambda shares, generator: flat_draw(shares, None)),
        mistake("""the same draw every time
            You make a generator with a seed of your own, or seed torch's, so calls draw the same.
            Draw with the one that is given, and seed none.""")
        .by(draw=lambda shares, generator: flat_draw(shares, torch.Generator().manual_seed(0)))
        .by(draw=draw_from_seed_0),
    ),
)
