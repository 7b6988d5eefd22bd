"""The exercise ``window_weights``: the weights of the moving average."""

import numpy as np

from attncourse import mixing
from attncourse.bank.mixing.shared import ROWS_NOT_NORMALISED, divide_by_row_number
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import CaseTable, Count, once_more, row
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, over, refuse_if
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"n": Count("n"), "width": Count("width")})


def window_cases(rng: Rng) -> list[Case]:
    five = Case((5, 3))
    return [five, Case((8, 3)), once_more(five)]


def wide_window_cases(rng: Rng) -> list[Case]:
    return [Case((11, 5)), Case((int(rng.integers(17, 23)), 7))]


# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_window_weights(
    refuse=lambda n, width: width % 2 == 0,
    reach=lambda width: width // 2,
    inside=lambda i, j, n, half: abs(i - j) <= half,
    along=EACH_ROW,
    divide=lambda W, sums, width: over(W, sums),
):
    """Return ``window_weights`` made of decisions: widths, reach, tokens inside, weights."""

    def window_weights(n, width):
        refuse_if(refuse(n, width))
        i, j = np.arange(n)[:, None], np.arange(n)[None, :]
        W = inside(i, j, n, reach(width)).astype(float)
        return divide(W, W.sum(**along), width)

    return window_weights


def fold_into_text(fold):
    """Return the option for a window that never shortens: ``fold`` maps tokens inside."""
    return lambda i, j, n, half: np.eye(n)[fold(i + np.arange(-half, half + 1), n)].sum(1)


def slice_from_negative(i, j, n, half):
    """Return whether token j is in a slice whose negative start counts from the end."""
    start = np.where(i < half, np.maximum(n + i - half, 0), i - half)
    return (start <= j) & (j <= i + half)


def all_but_itself(i, j, n, half):
    return (abs(i - j) <= half) & (i != j)


OF_WINDOWS = (
    numpy_mistakes.COLUMNS.called("the columns sum to 1").by(along={"axis": -1}),
    ROWS_NOT_NORMALISED,
    mistake("""the edges are not renormalised
        Your rows near an end sum to less than 1, because you divide by tokens that are not there.
        Divide by the number of those that are in the window.""")
    .by(divide=lambda W, sums, width: W / width)
    # as if the window were cut off at the beginning alone
    .by(divide_by_row_number(lambda i, width: np.minimum(i, width // 2) + 1 + width // 2)),
    mistake("""the window has another width
        `width` counts all the tokens of a window, so it reaches `width // 2` to each side, and a
        token at that distance is inside: `<=`. Yours reaches farther or less far.""")
    .by(reach=lambda width: width)
    .by(reach=lambda width: width - 1)
    .by(reach=lambda width: width // 2 + 1)
    .by(reach=lambda width: width // 2 - 1)
    .by(reach=lambda width: max(width // 2 - 1, 0)),
    mistake("""the window is not centred
        Your window looks back or ahead only, has no end on one side (`abs` is missing), or its
        slice ends before token i + width // 2 (a slice leaves its end out). It reaches `width // 2`
        tokens to each side.""")
    .by(inside=lambda i, j, n, half: (i - j >= 0) & (i - j <= 2 * half))
    .by(inside=lambda i, j, n, half: (i - j >= 0) & (i - j <= half))
    .by(inside=lambda i, j, n, half: (j - i >= 0) & (j - i <= 2 * half))
    .by(inside=lambda i, j, n, half: (j - i >= 0) & (j - i <= half))
    .by(inside=lambda i, j, n, half: (i - half <= j) & (j < i + half))
    .by(inside=lambda i, j, n, half: (i - half < j) & (j <= i + half))
    .by(inside=lambda i, j, n, half: (i - half <= j) & (j < i + max(half, 1)))
    .by(inside=lambda i, j, n, half: (i - max(half, 1) < j) & (j <= i + half))
    .by(inside=lambda i, j, n, half: i - j <= half)
    .by(inside=lambda i, j, n, half: j - i <= half),
    mistake("""a token leaves itself out
        Your window holds the neighbours without token i, its middle. `width` counts it too.""")
    .by(inside=all_but_itself)
    .by(inside=all_but_itself, divide=lambda W, sums, width: W / sums),
    mistake("""the window shrinks on both sides
        Near an end you make the window shorter on the other side too, so that it stays centred.
        Only what has no tokens is cut off: row 0 averages tokens 0 … `width // 2`.
    """).by(inside=lambda i, j, n, half: abs(i - j) <= np.minimum(half, np.minimum(i, n - 1 - i))),
    mistake("""a token near an end keeps to itself
        Where the window passes an end you give token i all the weight, or what is left over. It is
        cut off there, and the tokens that remain have equal shares.""")
    .by(inside=lambda i, j, n, half: (abs(i - j) <= half) & (half <= i) & (i < n - half) | (i == j))
    .by(divide=lambda W, sums, width: W / width + np.diag(1 - sums[:, 0] / width)),
    mistake("""the window keeps its width at the edges
        Where your window passes an end it goes on at the other one, repeats the last token, turns
        back or moves inside. It is cut off there, and what remains shares the weight.""")
    .by(inside=lambda i, j, n, half: np.minimum((i - j) % n, (j - i) % n) <= half)
    .by(inside=fold_into_text(lambda j, n: j % n))
    .by(inside=fold_into_text(lambda j, n: np.clip(j, 0, n - 1)))
    .by(inside=fold_into_text(lambda j, n: n - 1 - abs(n - 1 - abs(j))))
    .by(inside=lambda i, j, n, half: abs(np.clip(i, half, max(n - 1 - half, half)) - j) <= half),
    mistake("""rows at the edges stay empty
        Near an end you ask for a whole window, or begin a slice below 0, which counts from the end.
        The window is cut off there: begin at `max(i - half, 0)`.""")
    .by(inside=lambda i, j, n, half: (abs(i - j) <= half) & (half <= i) & (i < n - half))
    .by(inside=slice_from_negative)
    .by(inside=slice_from_negative, divide=lambda W, sums, width: W / sums),
    mistake("""blocks, not windows
        You cut the sequence into blocks of `width` tokens. Each token has a window of its own,
        centred on it.
    """).by(inside=lambda i, j, n, half: i // (2 * half + 1) == j // (2 * half + 1)),
    mistake("""an even width is accepted
        An even window has no middle: a `ValueError` is asked for, and yours returns a matrix.""")
    .by(refuse=lambda n, width: False)
    .by(refuse=lambda n, width: False, reach=lambda width: (width - 1) // 2),
    mistake("""a width that is allowed is refused
        You refuse odd widths, or windows as wide as the sequence and wider. Only `width % 2 == 0`
        is refused: in a wide window every token sees what there is.""")
    .by(refuse=lambda n, width: width % 2 == 1)
    .by(refuse=lambda n, width: width % 2 == 0 or width > n)
    .by(refuse=lambda n, width: width % 2 == 0 or width >= n),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    mixing.window_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("a centred window whose rows sum to 1", 2).on(window_cases),
        Criterion("wider windows", 1).on(wide_window_cases),
        CASES.criterion("narrow, wide and single", 1).on(
            row("n=5 width=1", note="width 1: a token sees only itself"),
            row("n=5 width=5", note="a window as wide as the sequence"),
            row("n=3 width=7", note="a window wider than the sequence"),
            row("n=2 width=3", note="two tokens"),
            row("n=1 width=3", note="n = 1"),
        ),
        CASES.criterion("refuses an even width with ValueError", 1).on(
            *(Case(s, note="even width", raises=ValueError) for s in ((7, 4), (3, 2), (3, 8)))
        ),
    ),
    mistakes=made(compose_window_weights, *OF_WINDOWS),
)
