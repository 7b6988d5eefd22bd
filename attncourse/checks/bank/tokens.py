"""The exercises of chapter 1, from text to vectors."""

import re
import string

import numpy as np

from attncourse import tokens
from attncourse.checks.cases import Count, Drawn, Row, Table, normal, once_more, row, standard
from attncourse.checks.drivers import dtype_of
from attncourse.checks.exercise import (
    REFUSED,
    Between,
    Case,
    Criterion,
    Exercise,
    Family,
    Misconception,
    Rng,
    composition,
    leaves_arguments_alone,
)
from attncourse.checks.mistakes import Slip, made

# --- cases -----------------------------------------------------------------------------------

WORDS = ("The", "man", "walked", "the", "DOG", "my", "Cat", "is", "small", "She", "likes", "belly")
MARKS = (".", ",", "!", "?", ";", ":")


def random_text(rng: Rng, n: int) -> str:
    """n random words with single spaces between them, a mark glued to about every third."""
    words = rng.choice(WORDS, n)
    return " ".join(word + (rng.choice(MARKS) if rng.random() < 0.35 else "") for word in words)


FIRST_TEXT = Case(("the man walked the dog.",))


def text_values(rng: Rng) -> list[Case]:
    return [
        FIRST_TEXT,
        Case(("My cat is small, cute, and fluffy. She likes belly rubs.",)),
        Case((random_text(rng, 11).lower() + ".",)),
        Case((random_text(rng, 17) + " dog",), note="a word at the end"),
    ]


def text_marks(rng: Rng) -> list[Case]:
    return [
        Case(("i don't know?!",), note="an apostrophe; two marks in a row"),
        Case(("(see p. 3.14) ... 50% well-known",), note="brackets, dots, a hyphen"),
        Case(("“walked” — the dog…",), note="marks that are on no keyboard"),
        Case(("2 + 2 = 4 €",), note="signs"),
    ]


def text_space(rng: Rng) -> list[Case]:
    return [
        Case(("  the dog\n\n\twalked   the man ",), note="spaces, line ends and a tab"),
        Case(("",), note="an empty text"),
        Case((" \n ",), note="nothing but white space"),
    ]


def text_words(rng: Rng) -> list[Case]:
    year = int(rng.integers(1900, 2000))
    return [
        Case((f"in {year} he had 2 dogs",), note="digits"),
        Case(("Élan, Ærø und Übermut",), note="letters beyond a–z"),
        Case(("Straße und Größe",), note="ß, which is lower case"),
        Case(("the d_model of gpt2_small",), note="underscores are word characters"),
        once_more(FIRST_TEXT),
    ]


def some_ids(rng: Rng, shape: tuple[int, ...], n_vocab: int) -> np.ndarray:
    """Random ids in 0 … n_vocab − 1, not sorted, with 0 and one repeated id among them."""
    ids = rng.integers(1, max(n_vocab, 2), shape)
    flat = ids.reshape(-1)
    if flat.size > 3:
        flat[1], flat[2] = 0, flat[0]
    return np.minimum(ids, n_vocab - 1)


class IdTable(Table):
    """Cases whose ``ids`` are below the row's length v."""

    def argument(self, rng: Rng, name: str, one: str | Drawn | Count, row: Row):
        if name == "ids":
            one = Drawn(one, lambda rng, shape: some_ids(rng, shape, row.sizes["v"]))
        return super().argument(rng, name, one, row)


def out_of_range(rest) -> list[Case]:
    """Ids that are refused; ``rest`` is the other argument."""
    notes = {
        "an id below 0": [1, -1, 0],
        "an id equal to n_vocab": [1, 4, 0],
        "an id above n_vocab": [9, 1, 0],
        "a second id above n_vocab": [1, 9, 0],
        "no id that exists": [-1, 7],
    }
    return [Case((np.array(ids), rest), note=n, raises=ValueError) for n, ids in notes.items()]


HOT_CASES = IdTable({"ids": "... n", "n_vocab": Count("v")}, tensors=False)
HOT_BY_HAND = Case((np.array([2, 0, 2]), 4))

EMBED_CASES = IdTable({"ids": "... n", "table": "v d"}, tensors=False, how=normal)
EMBED_ROWS = standard(EMBED_CASES, large="table")
SMALL_TABLE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
EMBED_BY_HAND = Case((np.array([2, 0, 2]), SMALL_TABLE))


def vectors(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random directions with lengths from 40 to 90: next to them a guard of 1e-8 is nothing."""
    X = rng.normal(size=shape)
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return X * rng.uniform(40, 90, (*shape[:-1], 1))


def holding_zeros(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    X = vectors(rng, shape)
    X[..., 2, :] = 0
    return X


COSINE_CASES = Table({"X": "... n d", "Y": "... m d"}, tensors=False, how=vectors)
COSINE_ROWS = standard(COSINE_CASES)
COSINE_BY_HAND = Case(
    (
        np.array([[30.0, 40.0], [0.0, 50.0]]),
        np.array([[60.0, 80.0], [50.0, 0.0], [-40.0, 30.0]]),
    )
)
SMALL_ZERO = np.array([[30.0, 40.0], [0.0, 0.0]])


# --- usual mistakes: words and marks ---------------------------------------------------------


@composition
def tokenizer(
    prepare=str.lower,
    apostrophe="",
    hyphen="",
    word="",
    mark=r"[^\w\s]",
    cut=lambda text, pattern: re.findall(pattern, text),
    finish=lambda found: found,
):
    """A tokenizer made of decisions: what a word is and what a mark is, in a pattern."""
    pattern = "|".join(filter(None, (word or rf"[\w{apostrophe}{hyphen}]+", mark)))
    return lambda text: finish(cut(prepare(text), pattern))


def spaced(text, marks):
    return re.sub(f"([{re.escape(marks)}])", r" \1 ", text).split()


def unglued(text):
    """Each word, and the mark at its end apart."""
    pieces = (re.fullmatch(r"(.*?)([^\w\s]?)", piece).groups() for piece in text.split())
    return [part for piece in pieces for part in piece if part]


# Marks that someone might think of.
LISTS = (".", ".,", ".?!", ".,!?", ".,!?;:'", ".,!?;:'\"", ".,!?;:'\"()", ".,!?;:()-", ".,!?'-")


# --- usual mistakes: ids ---------------------------------------------------------------------


def outside(ids, n_vocab):
    return ((ids < 0) | (ids >= n_vocab)).any()


def refuse_if(wrong):
    if wrong:
        raise ValueError(REFUSED)


def compared(ids, n_vocab):
    """Zeros where no column has the id."""
    return (ids[..., None] == np.arange(n_vocab)).astype(float)


@composition
def hot(
    refuse=outside,
    place=lambda ids: ids,
    width=lambda ids, n_vocab: n_vocab,
    rows=lambda ids, n: np.eye(n)[ids],
    finish=lambda H, ids: H,
    dtype=float,
):
    """``one_hot`` made of decisions."""

    def one_hot(ids, n_vocab):
        refuse_if(refuse(ids, n_vocab))
        return finish(rows(place(ids), width(ids, n_vocab)), ids).astype(dtype)

    return one_hot


def rows_in_a_loop(ids, n):
    H = np.zeros((len(ids), n))
    for i, k in enumerate(ids):
        H[i, k] = 1
    return H


def rows_by_pairs(ids, n):
    H = np.zeros((len(ids), n))
    H[np.arange(len(ids)), ids] = 1
    return H


@composition
def lookup(
    refuse=outside,
    size=len,
    take=lambda ids, table: table[ids],
    finish=lambda X, table: X,
):
    """``embed`` made of decisions."""

    def embed(ids, table):
        refuse_if(refuse(ids, size(table)))
        return finish(take(ids, table), table)

    return embed


def row_padded(ids, table):
    table[0] = 0
    return table[ids]


OF_THE_RANGE = (
    Slip(
        "ids are not checked",
        "NumPy counts a negative index from the end, so id −1 silently becomes the last token, and "
        "an id that is too large raises IndexError. Test `(ids < 0) | (ids >= n_vocab)` first and "
        "raise `ValueError`.",
        {"refuse": lambda ids, n_vocab: False},
    ),
    Slip(
        "negative ids count from the end",
        "You refuse ids that are too large and let −1 pass: NumPy takes it for the last token. No "
        "token has a negative id; raise `ValueError`.",
        {"refuse": lambda ids, n_vocab: (ids >= n_vocab).any()},
    ),
    Slip(
        "only negative ids are refused",
        "You refuse ids below 0 and leave those that are too large to an IndexError. Test "
        "`ids >= n_vocab` too and raise `ValueError`.",
        {"refuse": lambda ids, n_vocab: (ids < 0).any()},
    ),
    Slip(
        "an id equal to n_vocab is accepted",
        "You test `ids > n_vocab`. Ids count from 0, so the last one is n_vocab − 1: test "
        "`ids >= n_vocab`.",
        {"refuse": lambda ids, n_vocab: ((ids < 0) | (ids > n_vocab)).any()},
    ),
    Slip(
        "an id that exists is refused",
        "You refuse id 0 or id n_vocab − 1. Both exist: wrong is `(ids < 0) | (ids >= n_vocab)`.",
        {"refuse": lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab - 1)).any()},
        lambda off: {"refuse": lambda ids, n: ((ids < off[0]) | (ids >= n - off[1])).any()},
        ((1, 0), (1, 1)),
    ),
    Slip(
        "only the first id is checked",
        "You look at the first id and no further. One wrong id anywhere is to raise `ValueError`: "
        "`((ids < 0) | (ids >= n_vocab)).any()`.",
        {"refuse": lambda ids, n_vocab: outside(ids[..., :1], n_vocab)},
    ),
)
ALL_WRONG = (
    "You ask whether `all` ids are out of range, and let one wrong id among right ones pass. One "
    "is enough to raise `ValueError`: `.any()`."
)


def all_outside(ids, n_vocab):
    return ((ids < 0) | (ids >= n_vocab)).all()


def too_small(ids, n_vocab):
    return (ids < 0).any()


def too_large(ids, n_vocab):
    return (ids >= n_vocab).any()


# --- usual mistakes: cosines -----------------------------------------------------------------


def length(X, axis=-1, keepdims=True):
    return np.linalg.norm(X, axis=axis, keepdims=keepdims)


def over(dividend, divisor):
    """A quotient, 0 wherever the divisor is 0."""
    return dividend / np.where(divisor == 0, 1, divisor) * (divisor != 0)


def dots(X, Y):
    return X @ np.swapaxes(Y, -1, -2)


@composition
def cosines(
    prepare=lambda X: X,
    length=length,
    over_x=over,
    over_y=over,
    compare=dots,
    finish=lambda S: S,
):
    """``cosine_similarity`` made of decisions."""

    def cosine_similarity(X, Y):
        X, Y = prepare(X), prepare(Y)
        return finish(compare(over_x(X, length(X)), over_y(Y, length(Y))))

    return cosine_similarity


def guarded(number: float):
    """The lengths plus a number."""

    def divide(dividend, divisor):
        return dividend / (divisor + number)

    return cosines(over_x=divide, over_y=divide)


def over_lengths_in_pairs(X, Y):
    return over(dots(X, Y), length(X, keepdims=False) * length(Y, keepdims=False))


def cosine_in_place(X, Y):
    X /= np.where(length(X) == 0, 1, length(X))
    Y /= np.where(length(Y) == 0, 1, length(Y))
    return dots(X, Y)


# --- exercises -------------------------------------------------------------------------------

TOKENIZE = Exercise(
    target="tokens.tokenize",
    reference=tokens.tokenize,
    section="Chapter 1, “From text to tokens”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("words and punctuation, in order and in lower case", 3, text_values),
        Criterion("every mark is a token of its own", 1, text_marks),
        Criterion("white space separates and is dropped", 1, text_space),
        Criterion("digits, underscores, letters of any alphabet", 1, text_words),
    ),
    misconceptions=(
        Misconception(
            "punctuation is glued to the words",
            "You split at white space only, so `dog.` is another token than `dog`. A mark is a "
            "token of its own: look for words or single marks with "
            r"`re.findall(r'\w+|[^\w\s]', …)`.",
            tokenizer(cut=lambda text, pattern: text.split()),
            also=(tokenizer(cut=lambda text, pattern: re.split(r"\s+", text)),),
        ),
        Misconception(
            "split at single spaces",
            "`split(' ')` leaves empty strings between two spaces and keeps line ends; and "
            "punctuation stays glued to the words. `split()` would mend the first, but the marks "
            r"need `re.findall(r'\w+|[^\w\s]', …)`.",
            tokenizer(cut=lambda text, pattern: text.split(" ")),
        ),
        Misconception(
            "capitals are kept",
            "Your tokens keep their capitals, so `The` and `the` are two tokens with two vectors. "
            "Start from `text.lower()`.",
            tokenizer(prepare=str),
        ),
        Misconception(
            "case is folded, not lowered",
            "`casefold` goes further than lower case: `straße` becomes `strasse`. `text.lower()` "
            "is asked for.",
            tokenizer(prepare=str.casefold),
        ),
        Misconception(
            "punctuation is dropped",
            "You return the words and lose the marks. `?` and `.` carry meaning: add "
            r"`|[^\w\s]` to the pattern, one character that is neither word nor space.",
            tokenizer(mark=""),
        ),
        Misconception(
            "words grow together where a mark was",
            "You delete the marks and then split, so `don't` becomes `dont`. A mark is a token, "
            "and the words around it stay two.",
            tokenizer(cut=lambda text, pattern: re.sub(r"[^\w\s]", "", text).split()),
            also=(
                tokenizer(
                    cut=lambda text, pattern: text.translate(
                        str.maketrans("", "", string.punctuation)
                    ).split()
                ),
            ),
        ),
        Misconception(
            "split at everything that is no word character",
            "You lose the marks, and where a text ends with one, `re.split` leaves an empty string "
            r"behind. Do not look for the gaps, look for the tokens: "
            r"`re.findall(r'\w+|[^\w\s]', …)`.",
            tokenizer(cut=lambda text, pattern: re.split(r"\W+", text)),
        ),
        Misconception(
            "marks that are not on your list are dropped",
            "You look for the marks you thought of, and lose the others: brackets, quotation "
            "marks, dashes. A list is never complete; ask what a character is not: "
            r"`[^\w\s]`.",
            tokenizer(mark=r"[.,!?;:]"),
            Family(
                lambda marks: tokenizer(mark=f"[{re.escape(marks)}]"), (*LISTS, string.punctuation)
            ),
        ),
        Misconception(
            "marks that are not on your list stay glued",
            "You separate the marks you thought of, and the others stay glued to words: "
            "brackets, quotation marks, dashes. A list is never complete; ask what a character is "
            r"not: `[^\w\s]`.",
            tokenizer(cut=lambda text, pattern: spaced(text, ".,!?;:")),
            Family(lambda marks: tokenizer(cut=lambda text, pattern: spaced(text, marks)), LISTS),
        ),
        Misconception(
            "only the marks of a keyboard are separated",
            "You separate the marks in `string.punctuation`. That leaves out “ ” — …, which stay "
            "glued to words, and it contains the underscore, which belongs to words. Ask what a "
            r"character is not: `[^\w\s]`.",
            tokenizer(cut=lambda text, pattern: spaced(text, string.punctuation)),
        ),
        Misconception(
            "signs are dropped",
            "You keep punctuation and lose signs such as + and €. A mark is every visible "
            r"character that is in no word: `[^\w\s]`.",
            tokenizer(mark=r"[^\w\s$+<=>^`|~€]"),
        ),
        Misconception(
            "punctuation is stripped from the ends of words",
            "You cut the marks off the words and throw them away; marks inside a word stay. "
            "Every mark is a token of its own, wherever it stands.",
            tokenizer(
                cut=lambda text, pattern: [
                    w for w in (w.strip(string.punctuation) for w in text.split()) if w
                ]
            ),
        ),
        Misconception(
            "only a mark at the end of a word is separated",
            "You split at white space and take one mark off each end. A mark may stand before a "
            "word, inside it or beside another one.",
            tokenizer(cut=lambda text, pattern: unglued(text)),
        ),
        Misconception(
            "words first, then marks",
            "You collect all words and then all marks. One pattern with `|` finds both in the "
            "order of the text.",
            tokenizer(
                cut=lambda text, pattern: re.findall(r"\w+", text) + re.findall(r"[^\w\s]", text)
            ),
        ),
        Misconception(
            "a run of marks is one token",
            r"Your pattern takes `?!` as one token. Each mark is a token of its own: `[^\w\s]` "
            "without a `+`.",
            tokenizer(mark=r"[^\w\s]+"),
            also=(
                tokenizer(mark=r"\S+"),
                tokenizer(
                    cut=lambda text, pattern: [t for t in re.split(r"(\W+)", text) if t.strip()]
                ),
            ),
        ),
        Misconception(
            "an apostrophe counts as a letter",
            "You keep `don't` in one piece. Here the apostrophe is a mark like any other, and the "
            "tokens are `don`, `'`, `t`.",
            tokenizer(apostrophe="'"),
            also=(tokenizer(word=r"\w+(?:'\w+)*"),),
        ),
        Misconception(
            "a hyphen counts as a letter",
            "You keep `well-known` in one piece. Here the hyphen is a mark like any other, and "
            "the tokens are `well`, `-`, `known`.",
            tokenizer(hyphen="-"),
            also=(tokenizer(word=r"\w+(?:-\w+)*"),),
        ),
        Misconception(
            "a point inside a number is no mark",
            "You keep `3.14` in one piece. Here a point is a mark wherever it stands: `3`, `.`, "
            "`14`.",
            tokenizer(word=r"\d+\.\d+|\w+"),
        ),
        Misconception(
            "white space becomes tokens",
            "Your list holds spaces or line ends. A character that is not in a word is a token "
            r"only if it is visible: `[^\w\s]`, not `\W`.",
            tokenizer(mark=r"\W"),
            also=(
                tokenizer(mark=r"[^\w ]"),
                tokenizer(cut=lambda text, pattern: re.split(r"(\W)", text)),
            ),
        ),
        Misconception(
            "only a–z are letters",
            "Your words are made of a–z and 0–9, so `Élan` loses its first letter. Python's "
            r"`\w` knows the letters of every alphabet, unless `re.ASCII` stands beside it.",
            tokenizer(word=r"[a-z0-9]+", mark=r"[^a-z0-9\s]"),
            also=(
                tokenizer(word=r"[a-z0-9_]+", mark=r"[^a-z0-9_\s]"),
                tokenizer(word=r"[a-z0-9]+"),
                tokenizer(word=r"[a-z0-9_]+"),
            ),
        ),
        Misconception(
            "digits are no part of words",
            r"Your numbers fall apart or vanish. A digit is a word character: `\w` stands for "
            "letters, digits and the underscore.",
            tokenizer(word=r"[^\W\d]+", mark=r"[^\w\s]|\d"),
            also=(
                tokenizer(word=r"[^\W\d]+"),
                tokenizer(word=r"[^\W\d]+|\d+"),
                tokenizer(word=r"[^\W\d_]+", mark=r"[^\w\s]|[\d_]"),
            ),
        ),
        Misconception(
            "an underscore counts as a mark",
            "`isalnum` is False for `_`, so `d_model` falls apart. The underscore is a word "
            r"character, as in `\w`.",
            tokenizer(word=r"[^\W_]+", mark=r"[^\w\s]|_"),
        ),
        Misconception(
            "words of one letter are dropped",
            r"Your words have two characters at least. `\w+` finds those of one too: `a`, `i`.",
            tokenizer(word=r"\w\w+"),
        ),
        Misconception(
            "the last word is lost",
            "You store a word when the next character ends it, and after the last word none comes. "
            "Store what is left when the loop is over.",
            tokenizer(word=r"\w+(?=\W)"),
        ),
        Misconception(
            "letters, not words",
            "You return single characters. A token here is a whole run of word characters: "
            r"`\w+` with the `+`.",
            tokenizer(cut=lambda text, pattern: re.findall(r"\S", text)),
            also=(tokenizer(cut=lambda text, pattern: list(text)),),
        ),
        Misconception(
            "every token only once",
            "You removed repetitions. A text may use a token twice, and both stand in the list; "
            "it is the vocabulary that holds each token once.",
            tokenizer(finish=lambda found: list(dict.fromkeys(found))),
        ),
        Misconception(
            "sorted",
            "You sorted the tokens. They stay in the order of the text, which says who walked "
            "whom.",
            tokenizer(finish=sorted),
            also=(tokenizer(finish=lambda found: sorted(set(found))),),
        ),
        Misconception(
            "one string",
            "You joined the tokens into one string again. Return the list of tokens.",
            tokenizer(finish=" ".join),
        ),
    ),
    hints=(
        "There are two kinds of tokens: a run of word characters, or one character that is neither "
        "a word character nor white space.",
        r"In a regular expression `\w` is a word character, `\s` is white space, and `[^\w\s]` is "
        "one character that is neither.",
        "`re.findall(pattern, text)` returns all matches in order; `a|b` matches a or b.",
    ),
)

ONE_HOT = Exercise(
    target="tokens.one_hot",
    reference=tokens.one_hot,
    section="Chapter 1, “From ids to vectors”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        Criterion(
            "one row for each id, with its 1 in the id's column",
            3,
            HOT_CASES(HOT_BY_HAND, row("n=5 v=7"), row("n=7 v=5"), row("n=5 v=5")),
        ),
        Criterion(
            "any number of ids and tokens",
            1,
            HOT_CASES(
                row("n=1 v=5", note="n = 1"),
                row("n=3 v=1", note="a vocabulary of one token"),
                row("n=5 v=103", note="a vocabulary much larger than the ids in use"),
                Case((np.array([2, 6, 0], np.int32), 7), note="ids of dtype int32"),
                row("n=5 v=7", note="the sizes of an earlier call, other ids"),
                once_more(HOT_BY_HAND),
            ),
        ),
        Criterion(
            "batches",
            1,
            HOT_CASES(
                row("n=5 v=7", batch=(2,), note="a batch of 2"),
                row("n=4 v=4", batch=(4,), note="every axis of length 4"),
                row("n=17 v=7", batch=(3,), turned=True, note="not contiguous in memory"),
                row("n=2 v=5", batch=(2, 3), turned=True, note="two batch axes"),
                row("n=3 v=7", batch=(2, 1, 3), turned=True, note="three batch axes"),
            ),
        ),
        Criterion(
            "the entries are float64",
            1,
            HOT_CASES(
                Case((np.array([2, 0, 5]), 7), use=dtype_of, shown="one_hot(ids, n_vocab=7).dtype"),
            ),
        ),
        Criterion("refuses ids out of range with ValueError", 1, lambda rng: out_of_range(4)),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "rows and columns are swapped",
            "Your matrix has a column for each id, shape (n_vocab, n). Tokens are rows throughout "
            "the course: return (n, n_vocab), so that the matrix times a table "
            "(n_vocab, d) gives (n, d).",
            hot(finish=lambda H, ids: np.swapaxes(H, -1, -2)),
        ),
        Misconception(
            "ids are counted from 1",
            "Your 1 stands one column too far left. Ids count from 0, as columns do: id 2 has its "
            "1 in column 2.",
            hot(place=lambda ids: ids - 1),
            also=(hot(place=lambda ids: ids - 1, rows=compared),),
        ),
        Misconception(
            "the id is written in place of 1",
            "Your rows hold the id itself in the id's column, and nothing at all for id 0. An id "
            "is a name, not a quantity: the entry is 1.",
            hot(finish=lambda H, ids: H * ids[..., None]),
        ),
        Misconception(
            "one row of counts for the whole text",
            "You added the rows up into one: how often each token occurs, with the order lost. "
            "Return one row for each id.",
            hot(finish=lambda H, ids: H.sum(-2)),
        ),
        Misconception(
            "one row that marks all tokens",
            "You put the ones of all ids into a single row. Return one row for each id, with "
            "exactly one 1 in it.",
            hot(finish=lambda H, ids: H.max(-2)),
            also=(hot(finish=lambda H, ids: H.reshape(-1, H.shape[-1]).max(0)),),
        ),
        Misconception(
            "the width is the largest id",
            "Your matrix has as many columns as the ids at hand need. Two texts would get vectors "
            "of different lengths: the width is `n_vocab`, whatever the text.",
            hot(width=lambda ids, n_vocab: ids.max() + 1),
        ),
        Misconception(
            "as many columns as ids",
            "Your matrix is square, (n, n). The columns stand for the tokens of the vocabulary, "
            "n_vocab of them, however long the text is.",
            hot(width=lambda ids, n_vocab: ids.shape[-1]),
            also=(hot(width=lambda ids, n_vocab: len(ids)),),
        ),
        Misconception(
            "a column too many",
            "Your matrix has n_vocab + 1 columns. Ids count from 0, so the last column is "
            "n_vocab − 1 and there are n_vocab of them.",
            hot(width=lambda ids, n_vocab: n_vocab + 1),
        ),
        Misconception(
            "each token only once",
            "You return one row for each token that occurs, in the order of the vocabulary. A "
            "token that occurs twice has two rows, in the order of the text.",
            hot(place=np.unique),
        ),
        Misconception(
            "batch axes are flattened",
            "You return one long matrix for a batch. Its leading axes stay: ids of shape (b, n) "
            "give (b, n, n_vocab).",
            hot(place=np.ravel),
        ),
        Misconception(
            "one list of ids only, by index pairs",
            "`H[np.arange(len(ids)), ids] = 1` fits ids of shape (n,) and fails on a batch "
            "(b, n). Indexing the identity matrix, `np.eye(n_vocab)[ids]`, takes ids of any shape.",
            hot(rows=rows_by_pairs),
        ),
        Misconception(
            "one list of ids only, in a loop",
            "Your loop over `ids` meets whole rows when the ids are a batch (b, n), and writes "
            "all their ones into one row. `np.eye(n_vocab)[ids]` takes ids of any shape.",
            hot(rows=rows_in_a_loop),
        ),
        Misconception(
            "whole numbers, not float64",
            "Your entries are integers. The row is a vector that goes into matrix products with "
            "weights: make it float64, as `np.zeros` and `np.eye` do by themselves.",
            hot(dtype=int),
            Family(lambda dtype: hot(dtype=dtype), ("int8", "uint8", "int16", "int32", "uint64")),
        ),
        Misconception(
            "truth values, not float64",
            "Your entries are True and False, the result of a comparison. Convert them with "
            "`.astype(float)`.",
            hot(dtype=bool),
        ),
        Misconception(
            "fewer digits than float64",
            "Your entries are float32 or float16. Leave the dtype to `np.zeros` or `np.eye`, which "
            "make float64.",
            hot(dtype=np.float32),
            also=(hot(dtype=np.float16),),
        ),
        Misconception(
            "an id out of range gets a row of zeros",
            "You compare every id with every column, so an id that no column has leaves its row "
            "empty, without a word. Raise `ValueError` for it.",
            hot(refuse=lambda ids, n_vocab: False, rows=compared),
            also=(hot(refuse=too_small, rows=compared), hot(refuse=too_large, rows=compared)),
        ),
        Misconception(
            "refused only where every id is wrong",
            ALL_WRONG,
            hot(refuse=all_outside),
            also=(hot(refuse=all_outside, rows=compared),),
        ),
        *made(hot, *OF_THE_RANGE),
    ),
    hints=(
        "Start from `np.zeros((len(ids), n_vocab))`. Which column of row i becomes 1?",
        "The rows you need are rows of the identity matrix: row k of `np.eye(n_vocab)` has its 1 "
        "in column k. An array of ids as an index picks one row for each, batches included.",
        "The range comes first: raise ValueError if `((ids < 0) | (ids >= n_vocab)).any()`.",
    ),
)

EMBED = Exercise(
    target="tokens.embed",
    reference=tokens.embed,
    section="Chapter 1, “From ids to vectors”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(
        Criterion(
            "row i is row ids[i] of the table",
            3,
            EMBED_CASES(EMBED_BY_HAND, row("n=5 v=7 d=3"), row("n=7 v=5 d=11")),
        ),
        Criterion(
            "any number of ids, tokens and features",
            1,
            EMBED_CASES(
                row("n=1 v=5 d=3", note="n = 1"),
                row("n=5 v=7 d=1", note="d = 1"),
                row("n=5 v=7 d=7", note="a square table"),
                row("n=5 v=7 d=3", turned=True, note="not contiguous in memory"),
            ),
        ),
        Criterion("batches", 1, EMBED_CASES(*EMBED_ROWS.batches)),
        Criterion(
            "large and small entries, whole numbers, float32",
            1,
            EMBED_CASES(
                *EMBED_ROWS.numbers,
                row("n=5 v=7 d=3", zero=("table",), note="a table of 0"),
                once_more(EMBED_BY_HAND),
            ),
        ),
        Criterion(
            "refuses ids out of range with ValueError", 1, lambda rng: out_of_range(SMALL_TABLE)
        ),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "columns of the table are taken",
            "`table[:, ids]` picks columns, which are features. The vectors are the rows of the "
            "table: `table[ids]`.",
            lookup(take=lambda ids, table: table[:, ids]),
        ),
        Misconception(
            "an axis is missing in np.take",
            "`np.take(table, ids)` picks single numbers from all entries in one row. Say "
            "`axis=0`, or write `table[ids]`.",
            lookup(take=lambda ids, table: np.take(table, ids)),
        ),
        Misconception(
            "the table is transposed first",
            "`table.T` has one row per feature, and ids pick tokens. The table already has one "
            "row per token: `table[ids]`.",
            lookup(take=lambda ids, table: table.T[ids]),
        ),
        Misconception(
            "the result is transposed",
            "You return one column per token. A sequence is `X` of shape (n, d): one row per "
            "token.",
            lookup(finish=lambda X, table: np.swapaxes(X, -1, -2)),
        ),
        Misconception(
            "ids are counted from 1",
            "You take row `ids − 1`. Ids count from 0, as rows do, and id 0 becomes the last row "
            "in yours.",
            lookup(take=lambda ids, table: table[ids - 1]),
        ),
        Misconception(
            "each token only once",
            "You return one row for each token that occurs, in the order of the table. A token "
            "that occurs twice has two rows, in the order of the text.",
            lookup(take=lambda ids, table: table[np.unique(ids)]),
        ),
        Misconception(
            "one vector for the whole text, the mean",
            "You average the rows into one vector. `embed` keeps the tokens apart: one row for "
            "each id.",
            lookup(finish=lambda X, table: X.mean(-2)),
        ),
        Misconception(
            "one vector for the whole text, the sum",
            "You add the rows up into one vector. `embed` keeps the tokens apart: one row for "
            "each id.",
            lookup(finish=lambda X, table: X.sum(-2)),
        ),
        Misconception(
            "batch axes are flattened",
            "You return one long matrix for a batch. Its leading axes stay: ids of shape (b, n) "
            "give (b, n, d).",
            lookup(take=lambda ids, table: table[ids.reshape(-1)]),
        ),
        Misconception(
            "multiplied by √d",
            "You multiply the vectors by √d, as the first Transformer does after its lookup. "
            "`embed` is the lookup alone.",
            lookup(finish=lambda X, table: X * np.sqrt(table.shape[-1])),
        ),
        Misconception(
            "fractions are cut off",
            "Your result has the dtype of the ids, whole numbers, and the vectors lose what comes "
            "after the point. It has the table's dtype.",
            lookup(finish=lambda X, table: X.astype(int)),
        ),
        Misconception(
            "row 0 is set to zero",
            "You clear row 0, as if id 0 were padding, and change the caller's table. Here id 0 is "
            "an ordinary row.",
            lookup(take=row_padded),
        ),
        Misconception(
            "id 0 gets a vector of zeros",
            "You take id 0 for padding. Here it is an ordinary token: its vector is row 0.",
            lookup(take=lambda ids, table: table[ids] * (ids != 0)[..., None]),
        ),
        Misconception(
            "the range is checked against d",
            "You compare the ids with the number of columns. There are as many ids as the table "
            "has rows: `len(table)`, which is `table.shape[0]`.",
            lookup(size=lambda table: table.shape[-1]),
        ),
        Misconception(
            "ids out of range are moved to the nearest one",
            "You clip the ids, so that −1 becomes the first token and 9 the last. A wrong id is a "
            "mistake made earlier, and hiding it helps nobody: raise `ValueError`.",
            lambda ids, table: table[np.clip(ids, 0, len(table) - 1)],
        ),
        Misconception(
            "ids out of range start again from 0",
            "You take the remainder, `ids % len(table)`, so that a wrong id becomes some other "
            "token. Raise `ValueError` for it.",
            lambda ids, table: table[ids % len(table)],
        ),
        Misconception(
            "an id out of range gets a vector of zeros",
            "You multiply with a one-hot matrix whose row is empty for a wrong id, and so the "
            "vector is zero, without a word. Raise `ValueError` for such an id.",
            lambda ids, table: compared(ids, len(table)) @ table,
        ),
        Misconception(
            "refused only where every id is wrong", ALL_WRONG, lookup(refuse=all_outside)
        ),
        *made(lookup, *OF_THE_RANGE),
    ),
    hints=(
        "`one_hot(ids, n_vocab) @ table` is right. Which entries of the table survive the zeros?",
        "An integer array as an index, `table[ids]`, picks whole rows, and any shape of `ids` "
        "will do.",
        "The range comes first: the ids that exist are 0 … len(table) − 1.",
    ),
)

COSINE_SIMILARITY = Exercise(
    target="tokens.cosine_similarity",
    reference=tokens.cosine_similarity,
    section="Chapter 1, “How alike are two vectors?”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion(
            "the cosine between every row of X and every row of Y",
            3,
            COSINE_CASES(
                COSINE_BY_HAND,
                row("n=7 m=5 d=3"),
                row("n=5 m=5 d=5", note="as many vectors as entries in each"),
            ),
        ),
        Criterion(
            "any number of vectors and features",
            1,
            COSINE_CASES(
                row("n=1 m=5 d=3", note="n = 1"),
                row("n=1 m=1 d=3", note="n = m = 1"),
                row("n=5 m=3 d=1", note="d = 1"),
                row("n=5 m=7 d=3", turned=True, note="not contiguous in memory"),
            ),
        ),
        Criterion(
            "a zero vector has similarity 0 with everything",
            1,
            COSINE_CASES(
                Case((SMALL_ZERO, SMALL_ZERO), note="the second vector is zero"),
                row("n=5 m=7 d=3", given={"X": Drawn("n d", holding_zeros)}, note="a 0 in X"),
                row("n=5 m=7 d=3", given={"Y": Drawn("m d", holding_zeros)}, note="a 0 in Y"),
            ),
        ),
        Criterion("batches", 1, COSINE_CASES(*COSINE_ROWS.batches)),
        Criterion(
            "large and short vectors, whole numbers, float32",
            1,
            COSINE_CASES(
                COSINE_ROWS.single,
                *COSINE_ROWS.integers,
                row("n=5 m=7 d=3", factor={"X": 1e7, "Y": 1e3}, note="in the millions"),
                row("n=5 m=7 d=3", factor=1e-4, note="short"),
                row("n=5 m=7 d=3", cancel=True, note="the entries of each add up to 0"),
                once_more(COSINE_BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    ),
    excludes=(
        ("a row of very small numbers", "Vectors that are not zero are at least 0.001 long."),
    ),
    misconceptions=(
        Misconception(
            "a zero vector gives NaN",
            "A vector of zeros has length 0, and 0/0 is NaN. Divide by 1 where the length is 0, "
            "`np.where(lengths == 0, 1, lengths)`, and the zeros stay zeros.",
            cosines(over_x=np.divide, over_y=np.divide),
            also=(cosines(over_x=np.divide), cosines(over_y=np.divide)),
        ),
        Misconception(
            "columns are normalised, not rows",
            "You divide every column by its length. A vector is a row: take the norm along the "
            "last axis, `np.linalg.norm(X, axis=-1, keepdims=True)`.",
            cosines(length=lambda X: length(X, -2)),
        ),
        Misconception(
            "one length for the whole matrix",
            "`np.linalg.norm(X)` without an axis is one number, the root of the sum of all squares "
            "in the matrix. Each row has its own length: `axis=-1, keepdims=True`.",
            cosines(length=lambda X: np.linalg.norm(X)),
        ),
        Misconception(
            "the lengths lost their axis",
            "`np.linalg.norm(X, axis=-1)` has shape (n,), and dividing by it lines vector i up "
            "with column i. `keepdims=True` leaves (n, 1), one length beside each row.",
            cosines(length=lambda X: length(X, keepdims=False)),
        ),
        Misconception(
            "the lengths are multiplied in pairs",
            "You multiply the lengths (n,) of X with the lengths (m,) of Y entry by entry, which "
            "fails, or lines them up with rows or columns alone. Every entry [i, j] needs the "
            "length of X[i] and that of Y[j]: shape (n, 1) for the one, (1, m) for the other. "
            "Dividing the rows of X and Y by their lengths first saves the trouble.",
            over_lengths_in_pairs,
            also=(lambda X, Y: over(dots(X, Y), length(X) * length(Y)),),
        ),
        Misconception(
            "Y is not transposed",
            "`X @ Y` sums over the columns of X and the rows of Y. The dot product of two "
            "vectors runs over the features of both, so Y has to be turned: "
            "`X @ np.swapaxes(Y, -1, -2)`.",
            cosines(compare=lambda x, y: x @ y),
        ),
        Misconception(
            "a guard that shows in the result",
            "You add a small number to every length, and all similarities shrink by more than "
            "rounding does. Replace only the lengths that are 0: "
            "`np.where(lengths == 0, 1, lengths)`.",
            guarded(1e-6),
            Family(guarded, Between(1e-8, 10.0)),
        ),
        Misconception(
            "the dot product is not divided by the lengths",
            "You return X Yᵀ. A dot product grows with the lengths of both vectors; the cosine "
            "divides them out and stays between −1 and 1.",
            lambda X, Y: dots(X, Y),
        ),
        Misconception(
            "only X is normalised",
            "You divide by the lengths of the rows of X and not by those of Y. The cosine divides "
            "by both.",
            cosines(over_y=lambda Y, lengths: Y),
        ),
        Misconception(
            "only Y is normalised",
            "You divide by the lengths of the rows of Y and not by those of X. The cosine divides "
            "by both.",
            cosines(over_x=lambda X, lengths: X),
        ),
        Misconception(
            "divided by squared lengths",
            "You divide by the sums of squares. The length of a vector is the square root of that "
            "sum.",
            cosines(length=lambda X: (X * X).sum(-1, keepdims=True)),
        ),
        Misconception(
            "divided by sums of absolute values",
            "You measure a vector by the sum of its absolute entries. The cosine takes the "
            "Euclidean length, the root of the sum of squares.",
            cosines(length=lambda X: np.abs(X).sum(-1, keepdims=True)),
        ),
        Misconception(
            "another measure of length",
            "You divide by the largest entry, the sum of the entries or the root of their mean "
            "square. The length is the root of the sum of squares.",
            cosines(length=lambda X: np.sqrt((X * X).mean(-1, keepdims=True))),
            also=(
                cosines(length=lambda X: np.abs(X).max(-1, keepdims=True)),
                cosines(length=lambda X: X.max(-1, keepdims=True)),
                cosines(length=lambda X: X.sum(-1, keepdims=True)),
            ),
        ),
        Misconception(
            "only row i with row i",
            "You compare each row of X with the row of Y of the same number. The result has an "
            "entry for every pair, shape (n, m): a matrix product, X Yᵀ.",
            cosines(compare=lambda x, y: (x * y).sum(-1)),
        ),
        Misconception(
            "rows and columns are swapped",
            "Your entry [i, j] compares Y[i] with X[j], shape (m, n). Row i of the result belongs "
            "to row i of X.",
            cosines(compare=lambda x, y: dots(y, x)),
        ),
        Misconception(
            "`.T` on a batch",
            "`.T` turns all axes around, the batch axes too. Only the last two are to be swapped: "
            "`np.swapaxes(Y, -1, -2)` or `Y.mT`.",
            cosines(compare=lambda x, y: x @ y.T),
        ),
        Misconception(
            "the mean is subtracted first",
            "You centre every vector before comparing. That is the correlation coefficient; the "
            "cosine takes the vectors as they are.",
            cosines(prepare=lambda X: X - X.mean(-1, keepdims=True)),
        ),
        Misconception(
            "a distance, not a similarity",
            "You return 1 − cosine, which is 0 for vectors in the same direction. The similarity "
            "is the cosine itself, which is 1 there.",
            cosines(finish=lambda S: 1 - S),
        ),
        Misconception(
            "Euclidean distances",
            "You measure how far apart the vectors are. The cosine compares their directions, "
            "whatever their lengths.",
            lambda X, Y: length(X[..., :, None, :] - Y[..., None, :, :], keepdims=False),
        ),
        Misconception(
            "the angle, not its cosine",
            "You return the angle. The cosine is wanted, which needs no arccos at all.",
            cosines(finish=lambda S: np.arccos(np.clip(S, -1, 1))),
            also=(cosines(finish=lambda S: np.degrees(np.arccos(np.clip(S, -1, 1)))),),
        ),
        Misconception(
            "the sign is lost",
            "You return absolute values, so that opposite directions count as the same. A cosine "
            "may be negative, down to −1.",
            cosines(finish=np.abs),
        ),
        Misconception(
            "negative similarities become 0",
            "You cut the result off at 0. A cosine may be negative, down to −1.",
            cosines(finish=lambda S: np.maximum(S, 0)),
        ),
        Misconception(
            "the argument is changed in place",
            "`X /= …` writes into the caller's array, which then holds other numbers than before. "
            "`X / …` makes a new one.",
            cosine_in_place,
        ),
    ),
    hints=(
        "Divide every row by its length first. What is the dot product of two vectors of length 1?",
        "`np.linalg.norm(X, axis=-1, keepdims=True)` holds the length of every row, (…, n, 1).",
        "`np.where(lengths == 0, 1, lengths)` replaces the lengths that must not be divided by.",
    ),
)

EXERCISES = (TOKENIZE, ONE_HOT, EMBED, COSINE_SIMILARITY)
