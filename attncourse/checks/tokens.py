"""The exercises of chapter 1, from text to vectors."""

import re
import string

import numpy as np

from attncourse import tokens
from attncourse.checks.drivers import dtype_of
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)

# --- cases -----------------------------------------------------------------------------------

WORDS = ("The", "man", "walked", "the", "DOG", "my", "Cat", "is", "small", "She", "likes", "belly")
MARKS = (".", ",", "!", "?", ";", ":")


def random_text(rng: Rng, n: int) -> str:
    """n random words with single spaces between them, a mark glued to about every third."""
    words = rng.choice(WORDS, n)
    return " ".join(word + (rng.choice(MARKS) if rng.random() < 0.35 else "") for word in words)


def text_values(rng: Rng) -> list[Case]:
    return [
        Case(("the man walked the dog.",)),
        Case(("My cat is small, cute, and fluffy. She likes belly rubs.",)),
        Case((random_text(rng, 11).lower() + ".",)),
        Case((random_text(rng, 17) + ".",)),
    ]


def text_marks(rng: Rng) -> list[Case]:
    return [
        Case(("i don't know?!",), note="an apostrophe; two marks in a row"),
        Case(("(see p. 3.14) ... 50% well-known",), note="brackets, dots, a hyphen"),
        Case(("“walked” — the dog…",), note="marks that are on no keyboard"),
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
        Case(("the d_model of gpt2_small",), note="underscores are word characters"),
    ]


def some_ids(rng: Rng, shape: int | tuple[int, ...], n_vocab: int) -> np.ndarray:
    """Random ids in 0 … n_vocab − 1, not sorted, with 0 and one repeated id among them."""
    ids = rng.integers(1, n_vocab, shape)
    flat = ids.reshape(-1)
    if flat.size > 3:
        flat[1], flat[2] = 0, flat[0]
    return ids


def hot_values(rng: Rng) -> list[Case]:
    return [
        Case((np.array([2, 0, 2]), 4)),
        Case((some_ids(rng, 5, 7), 7)),
        Case((some_ids(rng, 7, 5), 5)),
    ]


def hot_shapes(rng: Rng) -> list[Case]:
    return [
        Case((np.array([int(rng.integers(1, 5))]), 5), note="n = 1"),
        Case((np.array([0, 0, 0]), 1), note="a vocabulary of one token"),
        Case((some_ids(rng, 5, 7), 103), note="a vocabulary much larger than the ids in use"),
        Case((some_ids(rng, 10, 7)[::2], 7), note="ids not contiguous in memory"),
        Case((some_ids(rng, 5, 7).astype(np.int32), 7), note="ids of dtype int32"),
    ]


def hot_batch(rng: Rng) -> list[Case]:
    return [
        Case((some_ids(rng, (2, 5), 7), 7), note="a batch of 2"),
        Case((some_ids(rng, (2, 3, 5), 7), 7), note="two batch axes"),
    ]


def hot_dtype(rng: Rng) -> list[Case]:
    ids = some_ids(rng, 5, 7)
    return [Case((ids, 7), use=dtype_of, shown="one_hot(ids, n_vocab=7).dtype")]


def hot_refusals(rng: Rng) -> list[Case]:
    return [
        Case((np.array([1, -1, 0]), 4), note="an id below 0", raises=ValueError),
        Case((np.array([1, 4, 0]), 4), note="an id equal to n_vocab", raises=ValueError),
        Case((np.array([9, 1, 0]), 4), note="an id above n_vocab", raises=ValueError),
    ]


def row_values(rng: Rng) -> list[Case]:
    table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    return [
        Case((np.array([2, 0, 2]), table)),
        Case((some_ids(rng, 5, 7), rng.normal(size=(7, 3)))),
        Case((some_ids(rng, 7, 5), rng.normal(size=(5, 11)))),
    ]


def row_shapes(rng: Rng) -> list[Case]:
    return [
        Case((np.array([int(rng.integers(1, 5))]), rng.normal(size=(5, 3))), note="n = 1"),
        Case((some_ids(rng, 5, 7), rng.normal(size=(7, 1))), note="d = 1"),
        Case((some_ids(rng, 5, 7), rng.normal(size=(7, 7))), note="a square table"),
        Case(
            (some_ids(rng, 10, 7)[::2], rng.normal(size=(3, 7)).T),
            note="ids and table not contiguous in memory",
        ),
    ]


def row_batch(rng: Rng) -> list[Case]:
    return [
        Case((some_ids(rng, (2, 5), 7), rng.normal(size=(7, 3))), note="a batch of 2"),
        Case((some_ids(rng, (2, 3, 5), 7), rng.normal(size=(7, 11))), note="two batch axes"),
    ]


def row_numbers(rng: Rng) -> list[Case]:
    ids, table = some_ids(rng, 5, 7), rng.normal(size=(7, 3))
    return [
        Case((ids, 1e6 * table), note="large entries"),
        Case((ids, table.astype(np.float32)), note="float32"),
    ]


def row_refusals(rng: Rng) -> list[Case]:
    table = rng.normal(size=(4, 3))
    return [
        Case((np.array([1, -1, 0]), table), note="an id below 0", raises=ValueError),
        Case((np.array([1, 4, 0]), table), note="an id equal to n_vocab", raises=ValueError),
        Case((np.array([9, 1, 0]), table), note="an id above n_vocab", raises=ValueError),
    ]


def vectors(rng: Rng, *shape: int) -> np.ndarray:
    """Random directions with lengths from 40 to 90: next to them a guard of 1e-8 is nothing."""
    X = rng.normal(size=shape)
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return X * rng.uniform(40, 90, (*shape[:-1], 1))


def cosine_values(rng: Rng) -> list[Case]:
    X = np.array([[30.0, 40.0], [0.0, 50.0]])
    Y = np.array([[60.0, 80.0], [50.0, 0.0], [-40.0, 30.0]])
    return [
        Case((X, Y)),
        Case((vectors(rng, 7, 3), vectors(rng, 5, 3))),
        Case((vectors(rng, 5, 5), vectors(rng, 5, 5)), note="as many vectors as entries in each"),
    ]


def cosine_shapes(rng: Rng) -> list[Case]:
    return [
        Case((vectors(rng, 1, 3), vectors(rng, 5, 3)), note="n = 1"),
        Case((vectors(rng, 1, 3), vectors(rng, 1, 3)), note="n = m = 1"),
        Case((vectors(rng, 5, 1), vectors(rng, 3, 1)), note="d = 1"),
        Case(
            (vectors(rng, 3, 5).T, vectors(rng, 14, 3)[::2]),
            note="X and Y not contiguous in memory",
        ),
    ]


def cosine_zeros(rng: Rng) -> list[Case]:
    X, Y = vectors(rng, 5, 3), vectors(rng, 7, 3)
    X[2] = 0
    Y[4] = 0
    small = np.array([[30.0, 40.0], [0.0, 0.0]])
    return [
        Case((small, small), note="the second vector is zero"),
        Case((X, Y), note="a zero vector in X and one in Y"),
    ]


def cosine_batch(rng: Rng) -> list[Case]:
    return [
        Case((vectors(rng, 2, 5, 3), vectors(rng, 2, 7, 3)), note="a batch of 2"),
        Case((vectors(rng, 2, 3, 5, 7), vectors(rng, 2, 3, 11, 7)), note="two batch axes"),
    ]


def cosine_numbers(rng: Rng) -> list[Case]:
    X, Y = vectors(rng, 5, 3), vectors(rng, 7, 3)
    return [
        Case((1e6 * X, 1e3 * Y), note="large entries"),
        Case((X.astype(np.float32), Y.astype(np.float32)), note="float32"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def find_all(pattern: str, lower=str.lower):
    """A wrong tokenizer: all matches of ``pattern``."""
    return lambda text: re.findall(pattern, lower(text))


def stripped_words(text):
    return [w for w in (w.strip(string.punctuation) for w in text.lower().split()) if w]


def keyboard_marks(text):
    for mark in string.punctuation:
        text = text.replace(mark, f" {mark} ")
    return text.lower().split()


def some_marks(text):
    return re.sub(r"([.,!?;:])", r" \1 ", text.lower()).split()


def within(ids, n_vocab):
    """The ids, once it is certain that they are in range."""
    if (ids < 0).any() or (ids >= n_vocab).any():
        raise ValueError("id out of range")
    return ids


def at_most_n_vocab(ids, n_vocab):
    if (ids < 0).any() or (ids > n_vocab).any():
        raise ValueError("id out of range")
    return ids


def below_n_vocab(ids, n_vocab):
    if (ids >= n_vocab).any():
        raise ValueError("id out of range")
    return ids


def hot(ids, n_vocab, dtype=float):
    return np.eye(n_vocab, dtype=dtype)[ids]


def hot_loop(ids, n_vocab):
    H = np.zeros((len(ids), n_vocab))
    for i, k in enumerate(ids):
        H[i, k] = 1
    return H


def hot_pairs(ids, n_vocab):
    H = np.zeros((len(ids), n_vocab))
    H[np.arange(len(ids)), ids] = 1
    return H


def hot_ids_as_entries(ids, n_vocab):
    return hot(within(ids, n_vocab), n_vocab) * ids[..., None]


def row_padded(ids, table):
    table[0] = 0
    return table[within(ids, len(table))]


def over(dividend, divisor):
    """A quotient, 0 wherever the divisor is 0."""
    return dividend / np.where(divisor == 0, 1, divisor) * (divisor != 0)


def length(X, axis=-1, keepdims=True):
    return np.linalg.norm(X, axis=axis, keepdims=keepdims)


def dots(X, Y):
    return X @ np.swapaxes(Y, -1, -2)


def cosine(X, Y):
    return dots(over(X, length(X)), over(Y, length(Y)))


def cosine_unguarded(X, Y):
    return dots(X / length(X), Y / length(Y))


def cosine_by_columns(X, Y):
    return dots(over(X, length(X, -2)), over(Y, length(Y, -2)))


def cosine_without_keepdims(X, Y):
    return dots(over(X, length(X, keepdims=False)), over(Y, length(Y, keepdims=False)))


def cosine_of_paired_rows(X, Y):
    return over((X * Y).sum(-1), length(X, keepdims=False) * length(Y, keepdims=False))


def cosine_by_total(X, Y):
    return over(dots(X, Y), np.linalg.norm(X) * np.linalg.norm(Y))


def cosine_by_lengths_in_pairs(X, Y):
    return over(dots(X, Y), length(X, keepdims=False) * length(Y, keepdims=False))


def cosine_guarded_too_much(X, Y):
    return dots(X / (length(X) + 1e-6), Y / (length(Y) + 1e-6))


def cosine_by_squares(X, Y):
    return over(dots(X, Y), length(X) ** 2 * np.swapaxes(length(Y) ** 2, -1, -2))


def cosine_by_sums(X, Y):
    return dots(
        over(X, np.abs(X).sum(-1, keepdims=True)), over(Y, np.abs(Y).sum(-1, keepdims=True))
    )


def cosine_in_place(X, Y):
    X /= np.where(length(X) == 0, 1, length(X))
    Y /= np.where(length(Y) == 0, 1, length(Y))
    return dots(X, Y)


def cosine_all_axes_turned(X, Y):
    return over(X, length(X)) @ over(Y, length(Y)).T


def correlation(X, Y):
    return cosine(X - X.mean(-1, keepdims=True), Y - Y.mean(-1, keepdims=True))


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
            lambda text: text.lower().split(),
        ),
        Misconception(
            "split at single spaces",
            "`split(' ')` leaves empty strings between two spaces and keeps line ends; and "
            "punctuation stays glued to the words. `split()` would mend the first, but the marks "
            r"need `re.findall(r'\w+|[^\w\s]', …)`.",
            lambda text: text.lower().split(" "),
        ),
        Misconception(
            "capitals are kept",
            "Your tokens keep their capitals, so `The` and `the` are two tokens with two vectors. "
            "Start from `text.lower()`.",
            find_all(r"\w+|[^\w\s]", str),
        ),
        Misconception(
            "punctuation is dropped",
            "You return the words and lose the marks. `?` and `.` carry meaning: add "
            r"`|[^\w\s]` to the pattern, one character that is neither word nor space.",
            find_all(r"\w+"),
        ),
        Misconception(
            "split at everything that is no word character",
            "You lose the marks, and where a text ends with one, `re.split` leaves an empty string "
            r"behind. Do not look for the gaps, look for the tokens: "
            r"`re.findall(r'\w+|[^\w\s]', …)`.",
            lambda text: re.split(r"\W+", text.lower()),
        ),
        Misconception(
            "marks that are not on your list are dropped",
            "You look for the marks you thought of, and lose the others: brackets, quotation "
            "marks, dashes. A list is never complete; ask what a character is not: "
            r"`[^\w\s]`.",
            find_all(r"\w+|[.,!?;:]"),
        ),
        Misconception(
            "marks that are not on your list stay glued",
            "You separate the marks you thought of, and the others stay glued to words: "
            "brackets, quotation marks, dashes. A list is never complete; ask what a character is "
            r"not: `[^\w\s]`.",
            some_marks,
        ),
        Misconception(
            "punctuation is stripped from the ends of words",
            "You cut the marks off the words and throw them away; marks inside a word stay. "
            "Every mark is a token of its own, wherever it stands.",
            stripped_words,
        ),
        Misconception(
            "a run of marks is one token",
            r"Your pattern takes `?!` as one token. Each mark is a token of its own: `[^\w\s]` "
            "without a `+`.",
            find_all(r"\w+|[^\w\s]+"),
        ),
        Misconception(
            "an apostrophe counts as a letter",
            "You keep `don't` in one piece. Here the apostrophe is a mark like any other, and the "
            "tokens are `don`, `'`, `t`.",
            find_all(r"[\w']+|[^\w\s]"),
        ),
        Misconception(
            "a hyphen counts as a letter",
            "You keep `well-known` in one piece. Here the hyphen is a mark like any other, and "
            "the tokens are `well`, `-`, `known`.",
            find_all(r"[\w-]+|[^\w\s]"),
        ),
        Misconception(
            "white space becomes tokens",
            "Your list holds spaces or line ends. A character that is not in a word is a token "
            r"only if it is visible: `[^\w\s]`, not `\W`.",
            find_all(r"\w+|\W"),
        ),
        Misconception(
            "only a–z are letters",
            "Your words are made of a–z and 0–9, so `Élan` loses its first letter. Python's "
            r"`\w` knows the letters of every alphabet.",
            find_all(r"[a-z0-9]+|[^a-z0-9\s]"),
        ),
        Misconception(
            "digits are no part of words",
            r"Your numbers fall apart or vanish. A digit is a word character: `\w` stands for "
            "letters, digits and the underscore.",
            find_all(r"[^\W\d]+|[^\w\s]|\d"),
        ),
        Misconception(
            "only the marks of a keyboard are separated",
            "You separate the marks in `string.punctuation`. That leaves out “ ” — …, which stay "
            "glued to words, and it contains the underscore, which belongs to words. Ask what a "
            r"character is not: `[^\w\s]`.",
            keyboard_marks,
        ),
        Misconception(
            "letters, not words",
            "You return single characters. A token here is a whole run of word characters: "
            r"`\w+` with the `+`.",
            find_all(r"\S"),
        ),
        Misconception(
            "every token only once",
            "You removed repetitions. A text may use a token twice, and both stand in the list; "
            "it is the vocabulary that holds each token once.",
            lambda text: list(dict.fromkeys(tokens.tokenize(text))),
        ),
        Misconception(
            "sorted",
            "You sorted the tokens. They stay in the order of the text, which says who walked "
            "whom.",
            lambda text: sorted(tokens.tokenize(text)),
        ),
        Misconception(
            "one string",
            "You joined the tokens into one string again. Return the list of tokens.",
            lambda text: " ".join(tokens.tokenize(text)),
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
        Criterion("one row for each id, with its 1 in the id's column", 3, hot_values),
        Criterion("any number of ids and tokens", 1, hot_shapes),
        Criterion("batches", 1, hot_batch),
        Criterion("the entries are float64", 1, hot_dtype),
        Criterion("refuses ids out of range with ValueError", 1, hot_refusals),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "rows and columns are swapped",
            "Your matrix has a column for each id, shape (n_vocab, n). Tokens are rows throughout "
            "the course: return (n, n_vocab), so that the matrix times a table "
            "(n_vocab, d) gives (n, d).",
            lambda ids, n_vocab: np.swapaxes(hot(within(ids, n_vocab), n_vocab), -1, -2),
        ),
        Misconception(
            "ids are counted from 1",
            "Your 1 stands one column too far left. Ids count from 0, as columns do: id 2 has its "
            "1 in column 2.",
            lambda ids, n_vocab: hot(within(ids, n_vocab) - 1, n_vocab),
        ),
        Misconception(
            "the id is written in place of 1",
            "Your rows hold the id itself in the id's column, and nothing at all for id 0. An id "
            "is a name, not a quantity: the entry is 1.",
            hot_ids_as_entries,
        ),
        Misconception(
            "one row of counts for the whole text",
            "You added the rows up into one: how often each token occurs, with the order lost. "
            "Return one row for each id.",
            lambda ids, n_vocab: hot(within(ids, n_vocab), n_vocab).sum(-2),
        ),
        Misconception(
            "one row that marks all tokens",
            "You put the ones of all ids into a single row. Return one row for each id, with "
            "exactly one 1 in it.",
            lambda ids, n_vocab: hot(within(ids, n_vocab), n_vocab).max(-2),
        ),
        Misconception(
            "the width is the largest id",
            "Your matrix has as many columns as the ids at hand need. Two texts would get vectors "
            "of different lengths: the width is `n_vocab`, whatever the text.",
            lambda ids, n_vocab: hot(within(ids, n_vocab), ids.max() + 1),
        ),
        Misconception(
            "batch axes are flattened",
            "You return one long matrix for a batch. Its leading axes stay: ids of shape (b, n) "
            "give (b, n, n_vocab).",
            lambda ids, n_vocab: hot(within(ids, n_vocab).reshape(-1), n_vocab),
        ),
        Misconception(
            "one list of ids only, by index pairs",
            "`H[np.arange(len(ids)), ids] = 1` fits ids of shape (n,) and fails on a batch "
            "(b, n). Indexing the identity matrix, `np.eye(n_vocab)[ids]`, takes ids of any shape.",
            lambda ids, n_vocab: hot_pairs(within(ids, n_vocab), n_vocab),
        ),
        Misconception(
            "one list of ids only, by index pairs, and ids are not checked",
            "`H[np.arange(len(ids)), ids] = 1` fits ids of shape (n,) and fails on a batch "
            "(b, n): `np.eye(n_vocab)[ids]` takes ids of any shape. And test "
            "`(ids < 0) | (ids >= n_vocab)` first: NumPy takes −1 for the last token, and the "
            "exercise asks for `ValueError`.",
            hot_pairs,
        ),
        Misconception(
            "one list of ids only, in a loop",
            "Your loop over `ids` meets whole rows when the ids are a batch (b, n), and writes "
            "all their ones into one row. `np.eye(n_vocab)[ids]` takes ids of any shape.",
            lambda ids, n_vocab: hot_loop(within(ids, n_vocab), n_vocab),
        ),
        Misconception(
            "one list of ids only, in a loop, and ids are not checked",
            "Your loop over `ids` meets whole rows when the ids are a batch (b, n), and writes "
            "all their ones into one row: `np.eye(n_vocab)[ids]` takes ids of any shape. And test "
            "`(ids < 0) | (ids >= n_vocab)` first: NumPy takes −1 for the last token, and the "
            "exercise asks for `ValueError`.",
            hot_loop,
        ),
        Misconception(
            "whole numbers, not float64",
            "Your entries are integers. The row is a vector that goes into matrix products with "
            "weights: make it float64, as `np.zeros` and `np.eye` do by themselves.",
            lambda ids, n_vocab: hot(within(ids, n_vocab), n_vocab, int),
        ),
        Misconception(
            "truth values, not float64",
            "Your entries are True and False, the result of a comparison. Convert them with "
            "`.astype(float)`.",
            lambda ids, n_vocab: hot(within(ids, n_vocab), n_vocab, bool),
        ),
        Misconception(
            "ids are not checked",
            "NumPy counts a negative index from the end, so id −1 silently becomes the last "
            "token, and an id that is too large raises IndexError. Test "
            "`(ids < 0) | (ids >= n_vocab)` first and raise `ValueError`.",
            hot,
        ),
        Misconception(
            "negative ids count from the end",
            "You refuse ids that are too large and let −1 pass: NumPy takes it for the last "
            "token. No token has a negative id; raise `ValueError`.",
            lambda ids, n_vocab: hot(below_n_vocab(ids, n_vocab), n_vocab),
        ),
        Misconception(
            "an id equal to n_vocab is accepted",
            "You test `ids > n_vocab`. Ids count from 0, so the last one is n_vocab − 1: test "
            "`ids >= n_vocab`.",
            lambda ids, n_vocab: hot(at_most_n_vocab(ids, n_vocab), n_vocab),
        ),
        Misconception(
            "an id out of range gets a row of zeros",
            "You compare every id with every column, so an id that no column has leaves its row "
            "empty, without a word. Raise `ValueError` for it.",
            lambda ids, n_vocab: (ids[..., None] == np.arange(n_vocab)).astype(float),
        ),
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
        Criterion("row i is row ids[i] of the table", 3, row_values),
        Criterion("any number of ids, tokens and features", 1, row_shapes),
        Criterion("batches", 1, row_batch),
        Criterion("large entries and float32", 1, row_numbers),
        Criterion("refuses ids out of range with ValueError", 1, row_refusals),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "columns of the table are taken",
            "`table[:, ids]` picks columns, which are features. The vectors are the rows of the "
            "table: `table[ids]`.",
            lambda ids, table: table[:, within(ids, len(table))],
        ),
        Misconception(
            "the table is transposed first",
            "`table.T` has one row per feature, and ids pick tokens. The table already has one "
            "row per token: `table[ids]`.",
            lambda ids, table: table.T[within(ids, len(table))],
        ),
        Misconception(
            "the result is transposed",
            "You return one column per token. A sequence is `X` of shape (n, d): one row per "
            "token.",
            lambda ids, table: np.swapaxes(table[within(ids, len(table))], -1, -2),
        ),
        Misconception(
            "ids are counted from 1",
            "You take row `ids − 1`. Ids count from 0, as rows do, and id 0 becomes the last row "
            "in yours.",
            lambda ids, table: table[within(ids, len(table)) - 1],
        ),
        Misconception(
            "each token only once",
            "You return one row for each token that occurs, in the order of the table. A token "
            "that occurs twice has two rows, in the order of the text.",
            lambda ids, table: table[np.unique(within(ids, len(table)))],
        ),
        Misconception(
            "one vector for the whole text, the mean",
            "You average the rows into one vector. `embed` keeps the tokens apart: one row for "
            "each id.",
            lambda ids, table: table[within(ids, len(table))].mean(-2),
        ),
        Misconception(
            "one vector for the whole text, the sum",
            "You add the rows up into one vector. `embed` keeps the tokens apart: one row for "
            "each id.",
            lambda ids, table: table[within(ids, len(table))].sum(-2),
        ),
        Misconception(
            "batch axes are flattened",
            "You return one long matrix for a batch. Its leading axes stay: ids of shape (b, n) "
            "give (b, n, d).",
            lambda ids, table: table[within(ids, len(table)).reshape(-1)],
        ),
        Misconception(
            "multiplied by √d",
            "You multiply the vectors by √d, as the first Transformer does after its lookup. "
            "`embed` is the lookup alone.",
            lambda ids, table: table[within(ids, len(table))] * np.sqrt(table.shape[-1]),
        ),
        Misconception(
            "row 0 is set to zero",
            "You clear row 0, as if id 0 were padding, and change the caller's table. Here id 0 is "
            "an ordinary row.",
            row_padded,
        ),
        Misconception(
            "ids are not checked",
            "NumPy counts a negative index from the end, so id −1 silently becomes the last "
            "token, and an id that is too large raises IndexError. Test "
            "`(ids < 0) | (ids >= len(table))` first and raise `ValueError`.",
            lambda ids, table: table[ids],
        ),
        Misconception(
            "negative ids count from the end",
            "You refuse ids that are too large and let −1 pass: NumPy takes it for the last "
            "token. No token has a negative id; raise `ValueError`.",
            lambda ids, table: table[below_n_vocab(ids, len(table))],
        ),
        Misconception(
            "an id equal to n_vocab is accepted",
            "You test `ids > n_vocab`. Ids count from 0, so the last one is n_vocab − 1: test "
            "`ids >= len(table)`.",
            lambda ids, table: table[at_most_n_vocab(ids, len(table))],
        ),
        Misconception(
            "ids out of range are moved to the nearest one",
            "You clip the ids, so that −1 becomes the first token and 9 the last. A wrong id is a "
            "mistake made earlier, and hiding it helps nobody: raise `ValueError`.",
            lambda ids, table: table[np.clip(ids, 0, len(table) - 1)],
        ),
        Misconception(
            "an id out of range gets a vector of zeros",
            "You multiply with a one-hot matrix whose row is empty for a wrong id, and so the "
            "vector is zero, without a word. Raise `ValueError` for such an id.",
            lambda ids, table: (ids[..., None] == np.arange(len(table))).astype(float) @ table,
        ),
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
        Criterion("the cosine between every row of X and every row of Y", 3, cosine_values),
        Criterion("any number of vectors and features", 1, cosine_shapes),
        Criterion("a zero vector has similarity 0 with everything", 1, cosine_zeros),
        Criterion("batches", 1, cosine_batch),
        Criterion("large entries and float32", 1, cosine_numbers),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "a zero vector gives NaN",
            "A vector of zeros has length 0, and 0/0 is NaN. Divide by 1 where the length is 0, "
            "`np.where(lengths == 0, 1, lengths)`, and the zeros stay zeros.",
            cosine_unguarded,
        ),
        Misconception(
            "columns are normalised, not rows",
            "You divide every column by its length. A vector is a row: take the norm along the "
            "last axis, `np.linalg.norm(X, axis=-1, keepdims=True)`.",
            cosine_by_columns,
        ),
        Misconception(
            "one length for the whole matrix",
            "`np.linalg.norm(X)` without an axis is one number, the root of the sum of all squares "
            "in the matrix. Each row has its own length: `axis=-1, keepdims=True`.",
            cosine_by_total,
        ),
        Misconception(
            "the lengths lost their axis",
            "`np.linalg.norm(X, axis=-1)` has shape (n,), and dividing by it lines vector i up "
            "with column i. `keepdims=True` leaves (n, 1), one length beside each row.",
            cosine_without_keepdims,
        ),
        Misconception(
            "the lengths are multiplied in pairs",
            "You multiply the lengths (n,) of X with the lengths (m,) of Y entry by entry, which "
            "fails, or lines them up with the columns. Every entry [i, j] needs the length of X[i] "
            "and that of Y[j]: shape (n, 1) for the one, (1, m) for the other. Dividing the rows "
            "of X and Y by their lengths first saves the trouble.",
            cosine_by_lengths_in_pairs,
        ),
        Misconception(
            "Y is not transposed",
            "`X @ Y` sums over the columns of X and the rows of Y. The dot product of two "
            "vectors runs over the features of both, so Y has to be turned: "
            "`X @ np.swapaxes(Y, -1, -2)`.",
            lambda X, Y: over(X, length(X)) @ over(Y, length(Y)),
        ),
        Misconception(
            "a guard that shows in the result",
            "You add a small number to every length, and all similarities shrink by more than "
            "rounding does. Replace only the lengths that are 0: "
            "`np.where(lengths == 0, 1, lengths)`.",
            cosine_guarded_too_much,
        ),
        Misconception(
            "the dot product is not divided by the lengths",
            "You return X Yᵀ. A dot product grows with the lengths of both vectors; the cosine "
            "divides them out and stays between −1 and 1.",
            dots,
        ),
        Misconception(
            "only X is normalised",
            "You divide by the lengths of the rows of X and not by those of Y. The cosine divides "
            "by both.",
            lambda X, Y: dots(over(X, length(X)), Y),
        ),
        Misconception(
            "only Y is normalised",
            "You divide by the lengths of the rows of Y and not by those of X. The cosine divides "
            "by both.",
            lambda X, Y: dots(X, over(Y, length(Y))),
        ),
        Misconception(
            "divided by squared lengths",
            "You divide by the sums of squares. The length of a vector is the square root of that "
            "sum.",
            cosine_by_squares,
        ),
        Misconception(
            "divided by sums of absolute values",
            "You measure a vector by the sum of its absolute entries. The cosine takes the "
            "Euclidean length, the root of the sum of squares.",
            cosine_by_sums,
        ),
        Misconception(
            "only row i with row i",
            "You compare each row of X with the row of Y of the same number. The result has an "
            "entry for every pair, shape (n, m): a matrix product, X Yᵀ.",
            cosine_of_paired_rows,
        ),
        Misconception(
            "rows and columns are swapped",
            "Your entry [i, j] compares Y[i] with X[j], shape (m, n). Row i of the result belongs "
            "to row i of X.",
            lambda X, Y: cosine(Y, X),
        ),
        Misconception(
            "`.T` on a batch",
            "`.T` turns all axes around, the batch axes too. Only the last two are to be swapped: "
            "`np.swapaxes(Y, -1, -2)` or `Y.mT`.",
            cosine_all_axes_turned,
        ),
        Misconception(
            "the mean is subtracted first",
            "You centre every vector before comparing. That is the correlation coefficient; the "
            "cosine takes the vectors as they are.",
            correlation,
        ),
        Misconception(
            "a distance, not a similarity",
            "You return 1 − cosine, which is 0 for vectors in the same direction. The similarity "
            "is the cosine itself, which is 1 there.",
            lambda X, Y: 1 - cosine(X, Y),
        ),
        Misconception(
            "the angle, not its cosine",
            "You return the angle. The cosine is wanted, which needs no arccos at all.",
            lambda X, Y: np.arccos(np.clip(cosine(X, Y), -1, 1)),
        ),
        Misconception(
            "the sign is lost",
            "You return absolute values, so that opposite directions count as the same. A cosine "
            "may be negative, down to −1.",
            lambda X, Y: np.abs(cosine(X, Y)),
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
