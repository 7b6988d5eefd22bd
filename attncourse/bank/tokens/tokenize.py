"""The exercise ``tokenize``: a text as its words and punctuation marks."""

import re
import string
from collections.abc import Callable

from attncourse import tokens
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

WORDS = ("The", "man", "walked", "the", "DOG", "my", "Cat", "is", "small", "She", "likes", "belly")
MARKS = (".", ",", "!", "?", ";", ":")
FIRST_TEXT = Case(("the man walked the dog.",))


def random_text(rng: Rng, n: int) -> str:
    """Return random words with single spaces, each mark glued to one, none to the last."""
    glued = dict(zip(rng.permutation(n - 1), MARKS, strict=False))
    return " ".join(word + glued.get(i, "") for i, word in enumerate(rng.choice(WORDS, n)))


def cases_with_notes(texts: dict[str, str], *more: Case) -> Callable[[Rng], list[Case]]:
    """Return what makes a case of each text, behind what is special about it."""
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

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_tokenize(
    prepare=str.lower,
    word=r"\w+",
    mark=r"[^\w\s]",
    cut=lambda text, pattern: re.findall(pattern, text),
    finish=lambda token_list: token_list,
):
    """Return a tokenizer made of decisions: what a word is and what a mark is, in a pattern."""
    pattern = "|".join(filter(None, (word, mark)))
    return lambda text: finish(cut(prepare(text), pattern))


def split_at_marks(marks):
    """Return a ``cut`` that puts white space around these marks and splits there."""
    return lambda text, pattern: re.sub(f"([{re.escape(marks)}])", r" \1 ", text).split()


def split_last_mark(text, pattern):
    """Return each word, and a mark at its end as a token of its own."""
    # pyrefly: ignore [missing-attribute]  every piece matches
    pieces = (re.fullmatch(r"(.*?)([^\w\s]?)", piece).groups() for piece in text.split())
    return [part for piece in pieces for part in piece if part]


# Marks that someone might think of, those inside words, and what may count as a letter or not.
MARK_LISTS = (
    ".",
    ".,",
    ".?!",
    ".,!?",
    ".,!?;:'",
    ".,!?;:'\"",
    ".,!?;:'\"()",
    ".,!?;:()-",
    ".,!?'-",
)
MARKS_INSIDE_WORDS = ("'", "-", "'-", "'’")
KNOWN_CHARACTERS, LOST_CHARACTERS = ("a-z0-9", "a-z0-9_", "a-z"), (r"\d", r"\d_", "_")
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
    .by(
        finish=lambda token_list: [t.lower() if t.isascii() else t for t in token_list], prepare=str
    ),
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
    .by(*({"mark": rf"[^\w\s{lost}]"} for lost in ("$+<=>^`|~€", *MARKS_INSIDE_WORDS)))
    .by_any(lambda marks: {"mark": f"[{re.escape(marks)}]"}, (*MARK_LISTS, string.punctuation)),
    mistake(r"""some marks stay glued to words
        You take one mark off the end of a word, or those on a list; `string.punctuation` lacks “ ”
        — …, too. A mark may stand anywhere: ask what a character is not, `[^\w\s]`.""")
    .by(cut=split_at_marks(".,!?;:"))
    .by(cut=split_last_mark)
    .by_any(lambda marks: {"cut": split_at_marks(marks)}, (*MARK_LISTS, string.punctuation)),
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
    .by(*({"word": rf"[\w{marks}]+"} for marks in MARKS_INSIDE_WORDS))
    .by(*({"word": rf"\w+(?:[{marks}]\w+)*"} for marks in MARKS_INSIDE_WORDS))
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
    .by(*({"word": rf"[{known}]+"} for known in KNOWN_CHARACTERS))
    .by(*({"word": rf"[^\W{lost}]+"} for lost in LOST_CHARACTERS))
    .by(word=r"[^\W\d]+|\d+")
    .by(*({"word": rf"[{known}]+", "mark": rf"[^{known}\s]"} for known in KNOWN_CHARACTERS))
    .by(*({"word": rf"[^\W{lost}]+", "mark": rf"[^\w\s]|[{lost}]"} for lost in LOST_CHARACTERS)),
    mistake("""no tokens are one empty token
        Where nothing is found you return a list with an empty string. A text without tokens has the
        empty list, `[]`.""").by(finish=lambda token_list: token_list or [""]),
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
    .by(finish=lambda token_list: list(dict.fromkeys(token_list)))
    .by(finish=lambda token_list: sorted(set(token_list))),
    mistake("""one string
        You joined the tokens into one string again. Return the list of tokens.
    """).by(finish=" ".join),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
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
        Criterion("every mark is a token of its own", 1).on(cases_with_notes(TEXTS_WITH_MARKS)),
        Criterion("white space separates and is dropped", 1).on(cases_with_notes(TEXTS_WITH_SPACE)),
        Criterion("digits, underscores, letters of any alphabet", 1).on(
            cases_with_notes(TEXTS_OF_WORDS, once_more(FIRST_TEXT))
        ),
    ),
    mistakes=made(compose_tokenize, *OF_WORDS),
)
