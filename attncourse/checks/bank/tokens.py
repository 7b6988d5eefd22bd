"""The exercises of chapter 1, from text to vectors."""

import re
import string
from collections.abc import Callable

import numpy as np

from attncourse import tokens
from attncourse.checks.callers import dtype_of
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import (
    CaseTable,
    Count,
    Drawn,
    Row,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, dots, over, refuse_if, result
from attncourse.checks.writing.recipes import made, mistake

# --- cases -----------------------------------------------------------------------------------

WORDS = ("The", "man", "walked", "the", "DOG", "my", "Cat", "is", "small", "She", "likes", "belly")
MARKS = (".", ",", "!", "?", ";", ":")
FIRST_TEXT = Case(("the man walked the dog.",))


def random_text(rng: Rng, n: int) -> str:
    """n random words with single spaces between them, each mark glued to one, none to the last."""
    glued = dict(zip(rng.permutation(n - 1), MARKS, strict=False))
    return " ".join(word + glued.get(i, "") for i, word in enumerate(rng.choice(WORDS, n)))


def noted(texts: dict[str, str], *more: Case) -> Callable[[Rng], list[Case]]:
    """A case for each text, behind what is special about it."""
    return lambda rng: [*(Case((text,), note=note) for note, text in texts.items()), *more]


TEXTS_WITH_MARKS = {
    "an apostrophe; two marks in a row": "i don't know?!",
    "brackets, dots, a hyphen": "(see p. 3.14) ... 50% well-known",
    "marks that are on no keyboard": "“walked” — the dog…",
    "signs": "2 + 2 = 4 €",
}
TEXTS_WITH_SPACE = {
    "spaces, line ends and a tab": "  the dog\n\n\twalked   the man ",
    "an empty text": "",
    "nothing but white space": " \n ",
}
TEXTS_OF_WORDS = {
    "digits": "in 1969 he had 2 dogs",
    "letters beyond a–z": "Élan, Ærø und Übermut",
    "ß, which is lower case": "Straße und Größe",
    "underscores are word characters": "the d_model of gpt2_small",
}


def some_ids(rng: Rng, shape: tuple[int, ...], n_vocab: int) -> np.ndarray:
    """Random ids in 0 … n_vocab − 1, not sorted; the last, twice, and 0 are among several."""
    ids = rng.integers(1, max(n_vocab, 2), shape)
    flat = ids.reshape(-1)
    if flat.size > 3:
        flat[:3] = n_vocab - 1, 0, n_vocab - 1
    return np.minimum(ids, n_vocab - 1)


class IdTable(CaseTable):
    """Cases whose ``ids`` are below the row's length v."""

    def argument(self, rng: Rng, name: str, one: str | Drawn | Count, row: Row):
        if name == "ids":
            one = Drawn(one, lambda rng, shape: some_ids(rng, shape, row.sizes["v"]))
        return super().argument(rng, name, one, row)


def refuses_ids(rest) -> Criterion:
    """The criterion that ids out of range are refused; ``rest`` is the other argument."""
    notes = {
        "an id below 0": [1, -1, 0],
        "an id equal to n_vocab": [1, 4, 0],
        "an id above n_vocab": [9, 1, 0],
        "a second id above n_vocab": [1, 9, 0],
        "no id that exists": [-1, 7],
        "no id above 0": [-2, -1],
        "no id below n_vocab": [4, 9],
        "an id below 0 in the first of two sequences": [[0, -1], [1, 2]],
        "an id above n_vocab in the first of two sequences": [[9, 0], [1, 2]],
    }
    cases = [Case((np.array(ids), rest), note=n, raises=ValueError) for n, ids in notes.items()]
    return Criterion("refuses ids out of range with ValueError", 1).on(lambda rng: cases)


HOT_CASES = IdTable({"ids": "... n", "n_vocab": Count("v")}, tensors=False)
HOT_BY_HAND = Case((np.array([2, 0, 2]), 4))
HOT_DTYPE = Case((np.array([2, 0, 5]), 7), use=dtype_of, shown="one_hot(ids, n_vocab=7).dtype")
HOT_SIZES = HOT_CASES(
    row("n=1 v=5", note="n = 1"),
    row("n=3 v=1", note="a vocabulary of one token"),
    Case((np.array([3, 0, 8, 3, 5]), 103), note="a vocabulary much larger than the ids in use"),
    Case((np.array([2, 6, 0], np.int32), 7), note="ids of dtype int32"),
    row("n=5 v=7", note="the sizes of an earlier call, other ids"),
    once_more(HOT_BY_HAND),
)

EMBED_CASES = IdTable({"ids": "... n", "table": "v d"}, tensors=False, how=normal)
EMBED_ROWS = standard(EMBED_CASES, large="table")
SMALL_TABLE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
EMBED_BY_HAND = Case((np.array([2, 0, 2]), SMALL_TABLE))
EMBED_SIZES = EMBED_CASES(
    row("n=1 v=5 d=3", note="n = 1"),
    row("n=5 v=7 d=1", note="d = 1"),
    row("n=5 v=7 d=7", note="a square table"),
    row("n=5 v=7 d=3", turned=True, note="not contiguous in memory"),
)
EMBED_NUMBERS = EMBED_CASES(
    *EMBED_ROWS.numbers,
    row("n=5 v=7 d=3", zero=("table",), note="a table of 0"),
    once_more(EMBED_BY_HAND),
)


def vectors(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random directions with lengths from 40 to 90: next to them a guard of 1e-8 is nothing."""
    X = rng.normal(size=shape)
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return X * rng.uniform(40, 90, (*shape[:-1], 1))


def holding_zeros(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    X = vectors(rng, shape)
    X[..., 2, :] = 0
    return X


COSINE_CASES = CaseTable({"X": "... n d", "Y": "... m d"}, tensors=False, how=vectors)
COSINE_ROWS = standard(COSINE_CASES)
COSINE_ROW = row("n=5 m=7 d=3")
COSINE_BY_HAND = Case(
    (np.array([[30.0, 40.0], [0.0, 50.0]]), np.array([[60.0, 80.0], [50.0, 0.0], [-40.0, 30.0]]))
)
COSINE_SIZES = COSINE_CASES(
    row("n=1 m=5 d=3", note="n = 1"),
    row("n=1 m=1 d=3", note="n = m = 1"),
    row("n=5 m=3 d=1", note="d = 1"),
    COSINE_ROW.but(turned=True, note="not contiguous in memory"),
)
COSINE_ZEROS = COSINE_CASES(
    Case((np.array([[30.0, 40.0], [0.0, 0.0]]),) * 2, note="the second vector is zero"),
    COSINE_ROW.but(given={"X": Drawn("n d", holding_zeros)}, note="a 0 in X"),
    COSINE_ROW.but(given={"Y": Drawn("m d", holding_zeros)}, note="a 0 in Y"),
)
COSINE_NUMBERS = COSINE_CASES(
    COSINE_ROWS.single,
    *COSINE_ROWS.integers,
    COSINE_ROW.but(factor={"X": 1e7, "Y": 1e3}, note="in the millions"),
    COSINE_ROW.but(factor={"X": 1e-4}, note="short in X"),
    COSINE_ROW.but(factor={"Y": 1e-4}, note="short in Y"),
    COSINE_ROW.but(cancel=True, note="the entries of each add up to 0"),
    once_more(COSINE_BY_HAND),
)

# --- usual mistakes: words and marks ---------------------------------------------------------


@composition
def tokenizer(
    prepare=str.lower,
    word=r"\w+",
    mark=r"[^\w\s]",
    cut=lambda text, pattern: re.findall(pattern, text),
    finish=lambda found: found,
):
    """A tokenizer made of decisions: what a word is and what a mark is, in a pattern."""
    pattern = "|".join(filter(None, (word, mark)))
    return lambda text: finish(cut(prepare(text), pattern))


def spaced(marks):
    """White space is put around these marks, and the text is split there."""
    return lambda text, pattern: re.sub(f"([{re.escape(marks)}])", r" \1 ", text).split()


def unglued(text, pattern):
    """Each word, and the mark at its end apart."""
    pieces = (re.fullmatch(r"(.*?)([^\w\s]?)", piece).groups() for piece in text.split())
    return [part for piece in pieces for part in piece if part]


# Marks that someone might think of, those inside words, and what may count as a letter or not.
LISTS = (".", ".,", ".?!", ".,!?", ".,!?;:'", ".,!?;:'\"", ".,!?;:'\"()", ".,!?;:()-", ".,!?'-")
INSIDE = ("'", "-", "'-", "'’")
KNOWN, LOST = ("a-z0-9", "a-z0-9_", "a-z"), (r"\d", r"\d_", "_")
OF_WORDS = (
    mistake(r"""punctuation is glued to the words
        You split at white space only, so `dog.` is another token than `dog`. A mark is a token of
        its own: look for words or single marks with `re.findall(r'\w+|[^\w\s]', …)`.""")
    .by(cut=lambda text, pattern: text.split())
    .by(cut=lambda text, pattern: re.split(r"\s+", text))
    .by(cut=lambda text, pattern: text.split(" ")),
    mistake("""another case than that of `lower`
        Your tokens hold capitals, so `The` and `the`, or `Élan` and `élan`, are two; or `casefold`
        makes `strasse` of `straße`. Start from `text.lower()`.""")
    .by(prepare=str)
    .by(prepare=str.casefold)
    .by(prepare=str.upper)
    .by(prepare=lambda text: re.sub("[A-Z]+", lambda m: m[0].lower(), text))
    .by(finish=lambda found: [t.lower() if t.isascii() else t for t in found], prepare=str),
    mistake(r"""punctuation is dropped
        You return the words and lose the marks, or leave empty strings at the ends. `?` and `.`
        carry meaning. Collect words and marks: `re.findall(r'\w+|[^\w\s]', …)`.""")
    .by(mark="")
    .by(cut=lambda text, pattern: re.split(r"\W+", text)),
    mistake("""marks are deleted before the words are split
        You delete the marks, at the ends of words or everywhere, so `don't` becomes `dont` or stays
        in one piece. A mark is a token of its own, wherever it stands.""")
    .by(cut=lambda text, pattern: re.sub(r"[^\w\s]", "", text).split())
    .by_any(
        lambda stripped: {"cut": lambda text, pattern: stripped(text)},
        (
            lambda text: text.translate(str.maketrans("", "", string.punctuation)).split(),
            lambda text: [w for p in text.split() if (w := p.strip(string.punctuation))],
            lambda text: [w for p in text.split() if (w := re.sub(r"^\W+|\W+$", "", p))],
        ),
    ),
    mistake(r"""marks that are not on your list are dropped
        You look for the marks you thought of, and lose others: brackets, dashes, or signs such as +
        and €. A list is never complete; ask what a character is not: `[^\w\s]`.""")
    .by(mark=r"[.,!?;:]")
    .by(*({"mark": rf"[^\w\s{lost}]"} for lost in ("$+<=>^`|~€", *INSIDE)))
    .by_any(lambda marks: {"mark": f"[{re.escape(marks)}]"}, (*LISTS, string.punctuation)),
    mistake(r"""some marks stay glued to words
        You take one mark off the end of a word, or those on a list; `string.punctuation` lacks “ ”
        — …, too. A mark may stand anywhere: ask what a character is not, `[^\w\s]`.""")
    .by(cut=spaced(".,!?;:"))
    .by(cut=unglued)
    .by_any(lambda marks: {"cut": spaced(marks)}, (*LISTS, string.punctuation)),
    mistake("""words first, then marks
        You collect all words and then all marks. One pattern with `|` finds both in the order of
        the text.
    """).by(cut=lambda text, pattern: [*re.findall(r"\w+", text), *re.findall(r"[^\w\s]", text)]),
    mistake(r"""a run of marks is one token
        Your pattern takes `?!`, or a mark with what follows, as one token. Each mark is a token of
        its own: `re.findall(r'\w+|[^\w\s]', …)`, without a `+` behind the bracket.""")
    .by(mark=r"[^\w\s]+")
    .by(mark=r"\S+")
    .by(cut=lambda text, pattern: [t for t in re.split(r"(\W+)", text) if t.strip()])
    .by(cut=lambda text, pattern: [s for t in re.split(r"\b", text) if (s := t.strip())]),
    mistake("""a mark inside a word stays there
        You keep `don't`, `well-known` or `3.14` in one piece. Here a mark is a token wherever it
        stands: `don`, `'`, `t`.""")
    .by(*({"word": rf"[\w{marks}]+"} for marks in INSIDE))
    .by(*({"word": rf"\w+(?:[{marks}]\w+)*"} for marks in INSIDE))
    .by(word=r"\d+\.\d+|\w+"),
    mistake(r"""white space becomes tokens
        Your list holds spaces or line ends. A character that is not in a word is a token only if it
        is visible: `re.findall(r'\w+|[^\w\s]', …)`.""")
    .by(mark=r"\W")
    .by(mark=r"[^\w ]")
    .by(cut=lambda text, pattern: re.split(r"(\W)", text)),
    mistake(r"""another idea of a word
        `\w` is a letter of any alphabet, a digit or the underscore. Yours leaves some out
        (a–z alone, `re.ASCII`, `isalpha`): `Élan`, `1969` or `d_model` fall apart or get lost.""")
    .by(*({"word": rf"[{known}]+"} for known in KNOWN))
    .by(*({"word": rf"[^\W{lost}]+"} for lost in LOST))
    .by(word=r"[^\W\d]+|\d+")
    .by(*({"word": rf"[{known}]+", "mark": rf"[^{known}\s]"} for known in KNOWN))
    .by(*({"word": rf"[^\W{lost}]+", "mark": rf"[^\w\s]|[{lost}]"} for lost in LOST)),
    mistake("""no tokens are one empty token
        Where nothing is found you return a list with an empty string. A text without tokens has the
        empty list, `[]`.""").by(finish=lambda found: found or [""]),
    mistake("""the mark behind a word is lost
        You store a word where another character ends it, and forget that character. Store the mark
        too, behind its word.
    """).by(cut=lambda text, pattern: re.findall(r"(\w+|[^\w\s])(?:(?<=\w)\W)?", text)),
    mistake("""the pattern's groups are returned
        Round brackets make `re.findall` return what they hold, a tuple where there are two pairs.
        Leave them out, or write `(?:…)`.
    """).by(cut=lambda text, pattern: re.findall(r"(\w+)|([^\w\s])", text)),
    mistake(r"""words of one letter are dropped
        Your words have two characters at least. `\w+` finds those of one too: `a`, `i`.
    """).by(word=r"\w\w+"),
    mistake("""the last word is lost
        You store a word when the next character ends it, and after the last word none comes. Store
        what is left when the loop is over.""").by(word=r"\w+(?=\W)"),
    mistake(r"""letters, not words
        You return single characters. A token is a run of word characters: `\w+` with the `+`.""")
    .by(cut=lambda text, pattern: re.findall(r"\S", text))
    .by(cut=lambda text, pattern: list(text)),
    mistake("""sorted, or every token only once
        You sorted the tokens or removed repetitions, as for a vocabulary. They stay as they stand
        in the text, which says who walked whom.""")
    .by(finish=sorted)
    .by(finish=lambda found: list(dict.fromkeys(found)))
    .by(finish=lambda found: sorted(set(found))),
    mistake("""one string
        You joined the tokens into one string again. Return the list of tokens.
    """).by(finish=" ".join),
)

# --- usual mistakes: ids ---------------------------------------------------------------------


def outside(ids, n):
    return ((ids < 0) | (ids >= n)).any()


def never(ids, n):
    return False


def compared(ids, table):
    """A vector of zeros where no row has the id."""
    return (ids[..., None] == np.arange(len(table))).astype(float) @ table


def picking(
    refuse=outside, place=lambda ids, n: ids, take=lambda ids, table: table[ids], finish=result
):
    """A row of a table for each id, made of decisions."""

    def rows(ids, table, n):
        refuse_if(refuse(ids, n))
        return finish(take(place(ids, n), table), ids)

    return rows


@composition
def hot(width=lambda ids, n_vocab: n_vocab, dtype=float, **decisions):
    """``one_hot`` made of decisions: rows of an identity matrix."""
    rows = picking(**decisions)
    return lambda ids, n_vocab: rows(ids, np.eye(width(ids, n_vocab)), n_vocab).astype(dtype)


@composition
def lookup(size=len, **decisions):
    """``embed`` made of decisions."""
    rows = picking(**decisions)
    return lambda ids, table: rows(ids, table, size(table))


def padded_in_place(ids, table):
    table[0] = 0
    return table[ids]


OF_IDS = (
    mistake("""ids are counted from 1
        You take row or column `id − 1`. Ids count from 0, as rows and columns do: id 2 is the
        third.""")
    .by(place=lambda ids, n: ids - 1)
    .by(place=lambda ids, n: ids - 1, take=compared),
    mistake("""each token only once
        You return one row for each token that occurs, in the order of the vocabulary. A token that
        occurs twice has two rows, in the order of the text.
    """).by(place=lambda ids, n: np.unique(ids)),
    mistake("""ids are not checked
        NumPy takes −1 for the last token and raises IndexError for an id that is too large. First
        raise `ValueError` if `((ids < 0) | (ids >= n_vocab)).any()`.""").by(refuse=never),
    mistake("""only one end of the range is checked
        You refuse negative ids or large ones, not both, or let n_vocab itself pass. Raise
        `ValueError` if `((ids < 0) | (ids >= n_vocab)).any()`.""")
    .by(refuse=lambda ids, n_vocab: (ids >= n_vocab).any())
    .by(refuse=lambda ids, n_vocab: (ids < 0).any())
    .by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids > n_vocab)).any())
    .by(refuse=lambda ids, n_vocab: (ids > n_vocab).any()),
    mistake("""a wrong id beside right ones passes
        You look at the first id alone, ask whether `all` are out of range, or whether some are too
        low `and` some too high. One wrong id anywhere is to raise `ValueError`: `((ids < 0) | (ids
        >= n_vocab)).any()`.""")
    .by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab)).all())
    .by(refuse=lambda ids, n_vocab: (ids < 0).all() or (ids >= n_vocab).all())
    .by(refuse=lambda ids, n_vocab: (ids < 0).any() and (ids >= n_vocab).any())
    .by(refuse=lambda ids, n_vocab: outside(ids[..., :1], n_vocab))
    .by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab)).all(), take=compared),
    mistake("""an id that exists is refused
        You refuse id 0 or id n_vocab − 1. Both exist: wrong is an id where `(ids < 0) | (ids >=
        n_vocab)`.""")
    .by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab - 1)).any())
    .by_any(
        lambda off: {"refuse": lambda ids, n: ((ids < off[0]) | (ids >= n - off[1])).any()},
        ((1, 0), (1, 1)),
    ),
    mistake("""an id out of range gets a row all the same
        You give an id that does not exist a row of zeros, the row of the nearest token or that of
        another. A wrong id is a mistake made earlier: raise `ValueError`.""")
    .by(refuse=never, take=compared)
    .by(refuse=lambda ids, n_vocab: (ids < 0).any(), take=compared)
    .by(refuse=lambda ids, n_vocab: (ids >= n_vocab).any(), take=compared)
    .by(refuse=never, place=lambda ids, n: np.clip(ids, 0, n - 1))
    .by(refuse=never, place=lambda ids, n: ids % n),
)


def in_one_axis(rows, ids):
    return rows.reshape(-1, rows.shape[-1])


OF_ONE_HOT = (
    mistake("""the axes of the ids run together
        You put the rows of all sequences below each other, or give each sequence one row. The axes
        of `ids` stay, and one more comes behind them: `(..., n, n_vocab)`.""")
    .by(finish=in_one_axis)
    .by(finish=lambda H, ids: H if ids.ndim == 1 else H.reshape(len(ids), -1, H.shape[-1]).max(1)),
    mistake("""more than one entry of a row is not 0
        Your rows hold other numbers beside the 1: ones up to the id, −1, or a small share. All
        entries but the id's are 0.""")
    .by(finish=lambda H, ids: H[..., ::-1].cumsum(-1)[..., ::-1])
    .by(finish=lambda H, ids: H.cumsum(-1))
    .by(finish=lambda H, ids: 2 * H - 1)
    .by(finish=lambda H, ids: 0.9 * H + 0.1 / H.shape[-1]),
    mistake("""the id is written in place of 1
        Your rows hold the id itself in the id's column, and nothing at all for id 0. An id is a
        name, not a quantity: the entry is 1.""").by(finish=lambda H, ids: H * ids[..., None]),
    mistake("""one row for the whole text
        You put the ones of all ids into a single row, or into every row: which tokens occur, or how
        often, with the order lost. Return one row for each id, with a single 1.""")
    .by(finish=lambda H, ids: 0 * H + H.reshape(-1, H.shape[-1]).max(0))
    .by(finish=lambda H, ids: 0 * H + H.max(-2, keepdims=True))
    .by(finish=lambda H, ids: H.max(-2))
    .by(finish=lambda H, ids: H.sum(-2))
    .by(finish=lambda H, ids: H.reshape(-1, H.shape[-1]).max(0)),
    mistake("""another width than n_vocab
        Your matrix has as many columns as there are ids, as the largest id needs, or one too many.
        There is a column for each token, n_vocab of them, whatever the text.""")
    .by(width=lambda ids, n_vocab: ids.max() + 1)
    .by(width=lambda ids, n_vocab: ids.shape[-1])
    .by(width=lambda ids, n_vocab: len(ids))
    .by(width=lambda ids, n_vocab: n_vocab + 1),
    mistake("""another dtype than float64
        Your entries are whole numbers, truth values or have fewer digits. The row goes into
        products with weights: make it float64, as `np.zeros` and `np.eye` do by themselves.""")
    .by(dtype=int)
    .by(dtype="bool")
    .by(dtype="int8")
    .by(dtype="uint8")
    .by(dtype="int16")
    .by(dtype="int32")
    .by(dtype="uint64")
    .by(dtype="float32")
    .by(dtype="float16"),
)
OF_EMBED = (
    mistake("""the axes of the ids run together
        You put the vectors of all sequences below each other, or the vectors of a sequence in one
        row, or return the first sequence alone. The axes of `ids` stay, and that of the features
        comes behind them: `(..., n, d)`.""")
    .by(finish=in_one_axis)
    .by(finish=lambda X, ids: X.reshape(*ids.shape[:-1], -1))
    .by(finish=lambda X, ids: X if ids.ndim == 1 else X[0]),
    mistake("""something is done to the vectors
        You take a mean off the table, or add running sums or positions. `embed` is the lookup
        alone: the rows come as they stand in the table.""")
    .by(take=lambda ids, table: (table - table.mean(0))[ids])
    .by(take=lambda ids, table: (table - table.mean(-1, keepdims=True))[ids])
    .by(finish=lambda X, ids: X.cumsum(-2))
    .by(finish=lambda X, ids: X + np.arange(X.shape[-2])[:, None]),
    mistake("""cut to whole numbers
        You write the vectors into an array of whole numbers, say one of the dtype of `ids`. It has
        the dtype of the table: `table[ids]` has it by itself.""").by(
        finish=lambda X, ids: X.astype(ids.dtype)
    ),
    mistake("""the vectors are divided by their lengths
        You give every vector the length 1. `embed` is the lookup alone: rows come as they are.
    """).by(finish=lambda X, ids: over(X, np.linalg.norm(X, **EACH_ROW))),
    mistake("""multiplied by √d
        You multiply the vectors by √d, as the first Transformer does after its lookup. `embed` is
        the lookup alone.""").by(finish=lambda X, ids: X * X.shape[-1] ** 0.5),
    mistake("""columns of the table are taken
        You pick columns, which are features, or single numbers: `table[:, ids]`, `table.T[ids]`,
        `np.take` without `axis=0`. The vectors are the rows: `table[ids]`.""")
    .by(take=lambda ids, table: table[:, ids])
    .by(take=lambda ids, table: table.T[ids])
    .by(take=lambda ids, table: np.take(table, ids)),
    mistake("""id 0 is taken for padding
        You clear row 0, or leave the vector of id 0 empty. Here id 0 is an ordinary token, its
        vector is row 0, and the table belongs to the caller.""")
    .by(take=lambda ids, table: table[ids] * (ids != 0)[..., None])
    .by(take=padded_in_place),
    mistake("""the range is checked against d
        You compare the ids with the number of columns. There are as many ids as the table has rows:
        `len(table)`, which is `table.shape[0]`.""").by(size=lambda table: table.shape[-1]),
)

# --- usual mistakes: cosines -----------------------------------------------------------------


@composition
def cosines(
    prepare=lambda X: X,
    measure=np.linalg.norm,
    along=EACH_ROW,
    divide=over,
    over_x=None,
    over_y=None,
    compare=dots,
    finish=result,
):
    """``cosine_similarity`` made of decisions; ``divide`` is done to X and Y alike."""

    def cosine_similarity(X, Y):
        X, Y = prepare(X), prepare(Y)
        x = (over_x or divide)(X, measure(X, **along))
        return finish(compare(x, (over_y or divide)(Y, measure(Y, **along))), X, Y)

    return cosine_similarity


def undivided(X, lengths):
    return X


def in_pairs(S, X, Y):
    """Dot products over the products of the lengths, (n,) times (m,)."""
    return over(dots(X, Y), np.linalg.norm(X, axis=-1) * np.linalg.norm(Y, axis=-1))


GUARDS = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def rooted(guard):
    return lambda X, **along: np.sqrt((X * X).sum(**along) + guard)


def products_of_lengths(X, Y):
    return dots(np.linalg.norm(X, **EACH_ROW), np.linalg.norm(Y, **EACH_ROW))


def over_guarded(guard):
    return lambda S, X, Y: dots(X, Y) / (products_of_lengths(X, Y) + guard)


def at_least(bound):
    return lambda X, **along: np.maximum(np.linalg.norm(X, **along), bound)


OF_COSINES = (
    numpy_mistakes.COLUMNS.by(along={"axis": 0, "keepdims": True}),
    numpy_mistakes.LOST_AXIS.called("the lengths lost their axis"),
    numpy_mistakes.WHOLE_MATRIX.called("one length for the whole matrix").said(
        "`np.linalg.norm(X)` without an axis is one number, the root of the sum of all squares. "
        "Each row has a length of its own: `axis=-1, keepdims=True`."
    ),
    numpy_mistakes.ZERO_BY_ZERO.by(over_x=np.divide).by(over_y=np.divide),
    numpy_mistakes.GUARD.by(*({"measure": rooted(guard)} for guard in (1e-12, *GUARDS))).by(
        *({"finish": over_guarded(guard)} for guard in GUARDS)
    ),
    mistake("""short vectors are taken for longer ones, or for zero
        You divide by 1, or by some other bound, where a length is less, or return 0 there. A vector
        of length 0.001 counts like any other: only one of 0 gets another divisor.""")
    .by(measure=at_least(1.0))
    .by(divide=lambda X, lengths: over(X, lengths) * (lengths >= 0.1))
    .by(finish=lambda S, X, Y: dots(X, Y) / np.maximum(products_of_lengths(X, Y), 1))
    .by_any(lambda bound: {"measure": at_least(bound)}, Between(6e-3, 30.0)),
    mistake("""a vector whose entries cancel is taken for zero
        You ask whether the sum of the entries is 0, or their mean, and (1, −1) has that, too. A
        vector of zeros is one whose length is 0.
    """).by(divide=lambda X, lengths: over(X, lengths) * (X.sum(-1, keepdims=True) != 0)),
    mistake("""a vector of zeros has another similarity than 0
        You give a vector of zeros some other number, such as 1. It has no direction, so its
        similarity with everything is 0.
    """).by(finish=lambda S, X, Y: np.where(products_of_lengths(X, Y) == 0, 1, S)),
    mistake("""no similarity is negative
        You cut negative cosines off, drop their sign, square them or move them to 0 … 1. Vectors
        that point away from each other have a cosine below 0, down to −1.""")
    .by(finish=lambda S, X, Y: np.abs(S))
    .by(finish=lambda S, X, Y: np.maximum(S, 0))
    .by(finish=lambda S, X, Y: (S + 1) / 2)
    .by(finish=lambda S, X, Y: S**2),
    numpy_mistakes.CUT.by(divide=lambda X, lengths: over(X, lengths).astype(X.dtype)),
    numpy_mistakes.IN_PLACE,
    numpy_mistakes.TRANSPOSED,
    mistake("""the lengths are multiplied in pairs
        You multiply the lengths (n,) of X with the lengths (m,) of Y entry by entry. Entry [i, j]
        needs the length of X[i] and that of Y[j]: divide the rows of X and Y by theirs first.""")
    .by(finish=in_pairs)
    .by(
        finish=lambda S, X, Y: over(
            dots(X, Y),
            np.linalg.norm(X, axis=-1, keepdims=True) * np.linalg.norm(Y, axis=-1, keepdims=True),
        )
    ),
    mistake("""not divided by both lengths
        The cosine divides the dot product by the length of X[i] and by that of Y[j]. You leave one
        of them out, or both.""")
    .by(divide=undivided)
    .by(over_x=undivided)
    .by(over_y=undivided),
    mistake("""another measure of length
        You measure a vector by its largest entry, a sum, a mean, or the sum of squares. Its length
        is the root of the sum of squares: `np.linalg.norm`.""")
    .by(measure=lambda X, **along: (X * X).sum(**along))
    .by_any(
        lambda measure: {"measure": lambda X, **along: measure(X, along)},
        (
            lambda X, along: np.abs(X).sum(**along),
            lambda X, along: np.sqrt((X * X).mean(**along)),
            lambda X, along: np.abs(X).max(**along),
            lambda X, along: X.max(**along),
            lambda X, along: X.sum(**along),
        ),
    ),
    mistake("""Y is not transposed
        `X @ Y` sums over the columns of X and the rows of Y. A dot product runs over the features
        of both, so Y has to be turned: `X @ np.swapaxes(Y, -1, -2)`.
    """).by(compare=lambda x, y: x @ y),
    mistake("""only row i with row i
        You compare each row of X with the row of Y of the same number. The result has an entry for
        every pair, shape (n, m): a matrix product, X Yᵀ.
    """).by(compare=lambda x, y: (x * y).sum(-1)),
    mistake("""the mean is subtracted first
        You centre every vector before comparing. That is the correlation coefficient; the cosine
        takes the vectors as they are.""").by(prepare=lambda X: X - X.mean(-1, keepdims=True)),
    mistake("""a distance, not a similarity
        You return 1 − cosine or Euclidean distances, 0 for what is alike. The cosine itself is
        asked for: 1 for the same direction, whatever the lengths.""")
    .by(finish=lambda S, X, Y: 1 - S)
    .by(finish=lambda S, X, Y: np.linalg.norm(X[..., :, None, :] - Y[..., None, :, :], axis=-1)),
    mistake("""the angle, not its cosine
        You return the angle. The cosine is wanted, which needs no arccos at all.""")
    .by(finish=lambda S, X, Y: np.arccos(np.clip(S, -1, 1)))
    .by(finish=lambda S, X, Y: np.degrees(np.arccos(np.clip(S, -1, 1)))),
)

# --- exercises -------------------------------------------------------------------------------

TOKENIZE = exercise(
    tokens.tokenize,
    section="Chapter 1, “From text to tokens”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("words and punctuation, in order and in lower case", 3).on(
            lambda rng: [
                FIRST_TEXT,
                Case(("My cat is small, cute, and fluffy. She likes belly rubs.",)),
                Case((random_text(rng, 11).lower() + ".",)),
                Case((random_text(rng, 17) + " dog",), note="a word at the end"),
            ]
        ),
        Criterion("every mark is a token of its own", 1).on(noted(TEXTS_WITH_MARKS)),
        Criterion("white space separates and is dropped", 1).on(noted(TEXTS_WITH_SPACE)),
        Criterion("digits, underscores, letters of any alphabet", 1).on(
            noted(TEXTS_OF_WORDS, once_more(FIRST_TEXT))
        ),
    ),
    mistakes=made(tokenizer, *OF_WORDS),
)

ONE_HOT = exercise(
    tokens.one_hot,
    section="Chapter 1, “From ids to vectors”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        HOT_CASES.criterion("one row for each id, with its 1 in the id's column", 3).on(
            HOT_BY_HAND, row("n=5 v=7"), row("n=7 v=5"), row("n=5 v=5")
        ),
        Criterion("any number of ids and tokens", 1).on(HOT_SIZES),
        HOT_CASES.criterion("batches", 1).on(*EMBED_ROWS.batches),
        HOT_CASES.criterion("the entries are float64", 1).on(HOT_DTYPE),
        refuses_ids(4),
        unchanged(),
    ),
    mistakes=made(hot, *OF_IDS, *OF_ONE_HOT, numpy_mistakes.TRANSPOSED),
)

EMBED = exercise(
    tokens.embed,
    section="Chapter 1, “From ids to vectors”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(
        EMBED_CASES.criterion("row i is row ids[i] of the table", 3).on(
            EMBED_BY_HAND, row("n=5 v=7 d=3"), row("n=7 v=5 d=11")
        ),
        Criterion("any number of ids, tokens and features", 1).on(EMBED_SIZES),
        EMBED_CASES.criterion("batches", 1).on(*EMBED_ROWS.batches),
        Criterion("large and small entries, whole numbers, float32", 1).on(EMBED_NUMBERS),
        refuses_ids(SMALL_TABLE),
        unchanged(),
    ),
    mistakes=made(
        lookup,
        *OF_EMBED,
        *(s.naming(n_vocab="len(table)") for s in OF_IDS),
        *numpy_mistakes.OF_RESULTS,
    ),
)

COSINE_SIMILARITY = exercise(
    tokens.cosine_similarity,
    section="Chapter 1, “How alike are two vectors?”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        COSINE_CASES.criterion("the cosine between every row of X and every row of Y", 3).on(
            COSINE_BY_HAND,
            row("n=7 m=5 d=3"),
            row("n=5 m=5 d=5", note="as many vectors as entries in each"),
        ),
        Criterion("any number of vectors and features", 1).on(COSINE_SIZES),
        Criterion("a zero vector has similarity 0 with everything", 1).on(COSINE_ZEROS),
        COSINE_CASES.criterion("batches", 1).on(*COSINE_ROWS.batches),
        Criterion("large and short vectors, whole numbers, float32", 1).on(COSINE_NUMBERS),
        unchanged(),
    ),
    excludes=(("a row of very small numbers", "Vectors that are not 0 are at least 0.001 long."),),
    mistakes=made(cosines, *OF_COSINES),
)

EXERCISES = (TOKENIZE, ONE_HOT, EMBED, COSINE_SIMILARITY)
