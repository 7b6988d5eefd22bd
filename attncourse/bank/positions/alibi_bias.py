"""The exercise ``alibi_bias``: a bias that falls with the distance."""

import math

import torch

from attncourse import positions
from attncourse.bank.positions.cases import FIXED, case_in_default_dtype
from attncourse.bank.positions.mistakes import NO_TENSOR
from attncourse.checks.exercise import Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

BY_HAND = case_in_default_dtype(2, 2, note="slopes 1/16 and 1/256")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_alibi_bias(
    slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / heads),
    distance=lambda i, j: (i - j).abs(),
    later=lambda b: b,
    finish=lambda b: b,
):
    """Return an ``alibi_bias`` made of decisions."""

    def alibi_bias(n_heads, n):
        slopes = slope(torch.arange(n_heads).double(), n_heads, n)
        place = torch.arange(n).double()
        b = -slopes[:, None, None] * distance(place[:, None], place)
        return finish(later(b).float())

    return alibi_bias


def slopes_of_the_paper(h, heads, n):
    # Interpolated where the number of heads is no power of two.
    power = 2 ** int(math.log2(heads))
    first = 2.0 ** (-8 * (h[:power] + 1) / power)
    between = 2.0 ** (-8 * (2 * h[: heads - power] + 1) / (2 * power))
    return torch.cat([first, between])


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    positions.alibi_bias,
    section="Chapter 11, “Farther is less”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("minus slope times distance, for every head", 2).on(
            lambda rng: [
                BY_HAND,
                case_in_default_dtype(4, 3, note="slopes 1/4, 1/16, 1/64 and 1/256"),
                case_in_default_dtype(8, 5, note="slopes 1/2, 1/4, …, 1/256"),
                case_in_default_dtype(16, int(rng.integers(6, 12))),
            ]
        ),
        FIXED.criterion("one head, one token", 1).on(
            case_in_default_dtype(1, 4, note="one head"),
            case_in_default_dtype(5, 1, note="one token"),
        ),
        FIXED.criterion("any number of heads and tokens", 2).on(
            case_in_default_dtype(3, 7, note="three heads"),
            case_in_default_dtype(7, 2, note="two tokens"),
            case_in_default_dtype(6, 6, note="as many heads as tokens"),
            case_in_default_dtype(4, 19, note="many tokens"),
            case_in_default_dtype(12, 4, note="twelve heads"),
            once_more(BY_HAND),
        ),
    ),
    mistakes=made(
        compose_alibi_bias,
        mistake("""the sign is missing
            Your bias grows with the distance and favours far tokens. It is −slope · |i − j|.
        """).by(finish=lambda b: -b),
        mistake("""the sign of the distance is kept
            You use i − j, which is negative for keys that come later, so those are favoured. The
            distance is |i − j|.""").by(distance=lambda i, j: i - j),
        mistake("""another function of the distance
            The bias is −slope · |i − j|: 0 on the diagonal, and a step costs the same in every
            sequence. You count distances from 1, divide them by n, or square or bend them.""")
        .by(distance=lambda i, j: (i - j) ** 2)
        .by(distance=lambda i, j: (i - j).abs() + 1)
        .by(distance=lambda i, j: (i - j).abs().sqrt())
        .by(distance=lambda i, j: (1 + (i - j).abs()).log())
        .by(distance=lambda i, j: (i - j).abs() / len(j))
        .by(distance=lambda i, j: (i - j).abs() / max(len(j) - 1, 1))
        .by_any(lambda number: {"distance": lambda i, j: (i - j).abs() + number}, (-1, 0.5, 1, 2)),
        mistake("""only one of the two places counts
            Your rows are all alike, or your columns: what counts is the place of the key alone, or
            of the query alone. The distance is that of the two, |i − j|.""")
        .by(distance=lambda i, j: 0 * i + len(j) - 1 - j)
        .by(distance=lambda i, j: 0 * i + j)
        .by(distance=lambda i, j: i + 0 * j),
        mistake("""earlier and later keys are treated differently
            A distance counts in both directions, and the bias is finite: a causal mask is a step of
            its own. You shut one side out, or leave it at 0, the best score of all.""")
        .by(later=lambda b: b.masked_fill(torch.ones_like(b).triu(1).bool(), -math.inf))
        .by(later=torch.tril)
        .by(later=torch.triu),
        mistake("""slopes counted from 0
            Your first slope is 1: the exponent is −8h/n_heads. It is −8(h + 1)/n_heads for h from
            0, and the last slope is 1/256.
        """).by(slope=lambda h, heads, n: 2.0 ** (-8 * h / heads)),
        mistake("""slopes of eight heads
            Your slopes are 1/2, 1/4, 1/8, …, or run from 1/2 to 1/256, which is right for eight
            heads and no other number. The exponent is −8(h + 1)/n_heads.""")
        .by(slope=lambda h, heads, n: 2.0 ** -(h + 1))
        .by(slope=lambda h, heads, n: 2.0 ** -torch.linspace(1, 8, heads).double()),
        mistake("""the exponent is computed in another order
            `2 ** -8 * (h + 1) / n_heads` takes the power first, `//` makes the exponent a whole
            number, and −8/(h + 1) divides by the head. Write `2 ** (-8 * (h + 1) / n_heads)`.""")
        .by(slope=lambda h, heads, n: 2.0**-8 * (h + 1) / heads)
        .by(slope=lambda h, heads, n: 2.0 ** -(8 * (h + 1) // heads))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) // heads))
        .by(slope=lambda h, heads, n: 2.0 ** (-(8 // heads) * (h + 1)))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 / (h + 1))),
        mistake("""another last slope
            Your slopes fall by equal factors, but end at another number than 1/256. They are powers
            of 2, not of e or another number, and the exponent is −8(h + 1)/n_heads.""")
        .by(slope=lambda h, heads, n: math.e ** (-8 * (h + 1) / heads))
        .by(slope=lambda h, heads, n: 0.5 ** ((h + 1) / heads))
        .by(slope=lambda h, heads, n: (2.0**-10) ** ((h + 1) / heads))
        .by(slope=lambda h, heads, n: (2.0**-16) ** ((h + 1) / heads))
        .by(slope=lambda h, heads, n: 1e-8 ** ((h + 1) / heads))
        .by_any(
            lambda number: {"slope": lambda h, heads, n: 2.0 ** (-number * (h + 1) / heads)},
            Between(1.05, 7.9),
        ),
        mistake("""the exponent is divided by another number than n_heads
            You divide by something near the number of heads, or by n, the number of tokens. It is
            n_heads itself: −8(h + 1)/n_heads, and the last slope is 1/256.""")
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / (heads + 1)))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * h / max(heads - 1, 1)))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / n)),
        mistake("""the exponent has the wrong sign
            Your slopes grow with h, up to 256: the exponent lacks its minus, or you divide by a
            slope. They fall, 2^(−8(h + 1)/n_heads).
        """).by(slope=lambda h, heads, n: 2.0 ** (8 * (h + 1) / heads)),
        mistake("""slopes evenly spaced
            Your slopes rise or fall by equal steps. They fall by equal factors, 2^(−8/n_heads).""")
        .by(slope=lambda h, heads, n: (heads - h) / heads)
        .by(slope=lambda h, heads, n: torch.linspace(1 / 2, 1 / 256, heads).double())
        .by(slope=lambda h, heads, n: torch.linspace(1, 1 / 256, heads).double())
        .by(slope=lambda h, heads, n: (h + 1) / heads)
        .by(slope=lambda h, heads, n: (h + 1) * 2 ** (-8 / heads)),
        mistake("""the flattest slope first
            Your slopes are right, but in the opposite order. Head 0 has the steepest one,
            2^(−8/n_heads), and the last head 1/256.
        """).by(slope=lambda h, heads, n: 2.0 ** (-8 * (heads - h) / heads)),
        mistake("""one slope for all heads
            Your heads share one slope, or have none. Head h has its own, 2^(−8(h + 1)/n_heads).""")
        .by(slope=lambda h, heads, n: 0 * h + 0.5)
        .by(slope=lambda h, heads, n: 0 * h + 1)
        .by(slope=lambda h, heads, n: 0 * h + 2 ** (-8 / heads))
        .by_any(lambda number: {"slope": lambda h, heads, n: 0 * h + number}, Between(1e-3, 0.9)),
        mistake("""slopes of the authors' program
            Where the number of heads is no power of two, the program of the paper takes its slopes
            from two sequences. Here one formula serves every number: 2^(−8(h + 1)/n_heads).
        """).by(slope=slopes_of_the_paper),
        NO_TENSOR,
    ),
)
