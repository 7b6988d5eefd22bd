"""The exercise ``encode_cdr3``: amino acids as ids."""

from collections.abc import Callable

import torch

from attncourse import sequences as chapter
from attncourse.checks.exercise import Case, Criterion, Exercise, Rng, composition
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.numpy_mistakes import refuse_if
from attncourse.checks.writing.recipes import made, mistake
from attncourse.sequences import ALPHABET


def random_letters(rng: Rng, n: int) -> str:
    return "".join(rng.choice(list(ALPHABET), n))


BY_HAND = Case(("CASSF", 7), note="C is 2, A is 1")


def loop_cases(rng: Rng) -> list[Case]:
    lengths = ((9, 15), (13, 17), (1, 5), (15, 41))
    return [BY_HAND, *(Case((f"C{random_letters(rng, a)}F", b)) for a, b in lengths)]


def edge_cases(rng: Rng) -> list[Case]:
    return [
        Case((ALPHABET, 20), note="every letter once, no padding"),
        Case((ALPHABET[::-1], 23), note="every letter once, from the last"),
        Case((f"CAS{random_letters(rng, 6)}", 9), note="exactly max_length letters"),
        Case(("W", 1), note="one letter"),
        Case(("AAAA", 9), note="one letter four times"),
        once_more(BY_HAND),
    ]


def lower_case_cases(rng: Rng) -> list[Case]:
    return [
        Case(("casslgf", 9)),
        Case((f"CASs{random_letters(rng, 4).lower()}F", 12), note="both cases"),
    ]


def refused_cases(*texts: tuple[str, str, int]) -> Callable[[Rng], list[Case]]:
    return lambda rng: [Case((t, n), note=note, raises=ValueError) for note, t, n in texts]


OTHER_LETTERS = (
    ("a star", "CAS*F", 9),
    ("a gap", "CA-SF", 9),
    ("B is no amino acid", "CABSF", 9),
    ("X, an unknown one", "CASXF", 9),
    ("a space at the end", "CASSF ", 9),
    ("a letter beyond A–Z", "CASÄF", 9),
    ("z in lower case", "CAzSF", 9),
)
TOO_LONG = (("one too many", "CASSLGF", 6), ("300 letters", "CASSLG" * 50, 20))


def refuse_other_letters(text):
    refuse_if(any(letter not in ALPHABET for letter in text))
    return text


def assert_letters(text):
    assert set(text) <= set(ALPHABET)
    return text


def look_up_letters(text):
    return "".join({letter: letter for letter in ALPHABET}[letter] for letter in text)


def assert_length(text, n):
    assert len(text) <= n
    return text


def index_last_place(text, n):
    """Return the text; Python raises an ``IndexError`` where it is too long."""
    last = range(n)[len(text) - 1]
    return text[: last + 1]


def assign_to_slice(text, n):
    """Return the text; torch raises an error where it is too long for the slice."""
    torch.zeros(n)[: len(text)] = torch.zeros(len(text))
    return text


def letter_ids(text):
    return [1 + ALPHABET.index(letter) for letter in text]


def pad_behind(ids, n):
    return ids + [0] * (n - len(ids))


@composition
def compose_encode_cdr3(
    read=str.upper,
    check=refuse_other_letters,
    number=letter_ids,
    fit=lambda text, n: refuse_if(len(text) > n) or text,
    pad=pad_behind,
    dtype=torch.int64,
    finish=lambda ids, n: ids,
):
    """Return ``encode_cdr3`` made of decisions."""

    def encode_cdr3(sequence, max_length):
        text = fit(check(read(sequence)), max_length)
        return finish(torch.tensor(pad(number(text), max_length)).to(dtype), max_length)

    return encode_cdr3


def ids_by_alphabet(alphabet, first=1):
    """Return a ``number`` by another alphabet, 0 for a letter that it lacks."""
    return lambda text: [first + alphabet.find(letter) for letter in text]


EXERCISE = Exercise(
    target="sequences.encode_cdr3",
    reference=chapter.encode_cdr3,
    section="Chapter 16, “Letters as tokens”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("ids 1 to 20, and 0 behind the end", 3).on(loop_cases),
        Criterion("every letter and any length that fits", 1).on(edge_cases),
        Criterion("lower case is read as upper", 1).on(lower_case_cases),
        Criterion("refuses another letter with ValueError", 1).on(refused_cases(*OTHER_LETTERS)),
        Criterion("refuses a longer sequence with ValueError", 1).on(refused_cases(*TOO_LONG)),
    ),
    mistakes=made(
        compose_encode_cdr3,
        mistake("""ids are counted from 0
            Your A is 0, and so is the padding: nobody can tell them apart. Letters are 1 to 20.
        """).by(number=ids_by_alphabet(ALPHABET, 0)),
        mistake("""lower case is not read
            You refuse lower case, or number it otherwise. Start from `sequence.upper()`.
        """).by(read=lambda text: text),
        mistake("""other letters are not checked
            What is no amino acid, a B say, gets an id, 0 or another. `str.find` says −1 for a
            letter that is missing and `dict.get` None or 0; `isalpha` takes B and X for letters.
            Refuse what is not in the alphabet.""")
        .by(check=lambda text: text, number=ids_by_alphabet(ALPHABET))
        .by(
            check=lambda text: refuse_if(not text.isalpha()) or text,
            number=ids_by_alphabet(ALPHABET),
        )
        .by(
            check=lambda text: refuse_if(not (text.isalpha() and text.isascii())) or text,
            number=ids_by_alphabet(ALPHABET),
        )
        .by(check=lambda text: text, number=lambda t: [1 + ALPHABET.find(a) % 22 for a in t]),
        mistake("""another error than ValueError
            What has to be refused stops your function with another error: a `dict` raises KeyError,
            a place that is not there IndexError, `assert` AssertionError. Test for it and raise
            `ValueError`.""")
        .by(check=assert_letters)
        .by(check=look_up_letters)
        .by(check=assert_letters, fit=assert_length)
        .by(fit=assert_length)
        .by(fit=index_last_place)
        .by(fit=assign_to_slice)
        .by(check=look_up_letters, fit=index_last_place)
        .by(check=look_up_letters, fit=assign_to_slice),
        mistake("""other letters are dropped
            You leave out letters that are not in the alphabet, and what stood beside them moves
            together. A sequence with such a letter is refused.""")
        .by(check=lambda text: "".join(a for a in text if a in ALPHABET))
        .by(check=lambda text: refuse_other_letters("".join(a for a in text if a not in " -*"))),
        mistake("""white space is stripped
            You strip the sequence before you read it. A space is no amino acid: it is refused like
            any other character.""").by(read=lambda text: text.strip().upper()),
        mistake("""long sequences are cut off
            You cut a sequence that is too long. A loop without its end is another loop: raise
            `ValueError`.""").by(fit=lambda text, n: text[:n]),
        mistake("""max_length itself is refused
            You refuse a sequence of exactly `max_length` letters. It fits: refuse more.
        """).by(fit=lambda text, n: refuse_if(len(text) >= n) or text),
        mistake("""longer sequences are let through
            A sequence longer than `max_length` passes, be it by one letter. Refuse where
            `len(sequence) > max_length`.""")
        .by(fit=lambda text, n: refuse_if(len(text) > n + 1) or text)
        .by(fit=lambda text, n: text),
        mistake("""padded in front
            Your zeros stand before the letters. They fill the end, behind the last letter.
        """).by(pad=lambda ids, n: [0] * (n - len(ids)) + ids),
        mistake("""not padded
            You return as many ids as there are letters. The result always has `max_length`.
        """).by(pad=lambda ids, n: ids),
        mistake("""padded with another number
            Behind the end stands 0, an id that no letter has.""")
        .by(pad=lambda ids, n: ids + [-1] * (n - len(ids)))
        .by_any(
            lambda filler: {"pad": lambda ids, n: ids + [filler] * (n - len(ids))},
            (-100, -1, 1, 20, 21, 22, 255),
        ),
        mistake("""another order of the alphabet
            The ids follow `ACDEFGHIKLMNPQRSTVWY`. Yours follow the Latin alphabet with its gaps,
            the amino acids by their full names, or the letters from the last to the first.""")
        .by(number=ids_by_alphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        .by(number=ids_by_alphabet("ARNDCQEGHILKMFPSTWYV"))
        .by(number=ids_by_alphabet(ALPHABET[::-1])),
        mistake("""numbered as they come
            You number the letters that this sequence has, by their first appearance or sorted. The
            same letter needs the same id in every sequence.""")
        .by(number=lambda text: [1 + list(dict.fromkeys(text)).index(a) for a in text])
        .by(number=lambda text: [1 + sorted(set(text)).index(a) for a in text]),
        mistake("""not of dtype int64
            An embedding is asked with whole numbers: return a tensor of dtype `torch.int64`.
            `torch.zeros(n)` is float32 unless you say `dtype`.""")
        .by(dtype=torch.float32)
        .by(dtype=torch.int32)
        .by(dtype=torch.uint8),
        mistake("""no tensor comes back
            You return a NumPy array or a list. A torch tensor is asked for.""")
        .by(finish=lambda ids, n: ids.numpy())
        .by(finish=lambda ids, n: ids.tolist()),
        mistake("""one-hot rows
            You return a row of zeros and ones for each letter. Ids are asked, one number each.""")
        .by(finish=lambda ids, n: torch.nn.functional.one_hot(ids, 21))
        .by(finish=lambda ids, n: torch.nn.functional.one_hot(ids, 21).float()),
        mistake("""the frame is cut off
            You leave out the first letters or the last one. Every letter is a token.""")
        .by(check=lambda text: refuse_other_letters(text)[1:-1])
        .by(check=lambda text: refuse_other_letters(text)[3:-1])
        .by(check=lambda text: refuse_other_letters(text)[:-1])
        .by(check=lambda text: refuse_other_letters(text)[1:]),
        mistake("""in another order
            Your letters are reversed, sorted or named once. Keep the order of the sequence: it is
            what attention reads with positions.""")
        .by(check=lambda text: refuse_other_letters(text)[::-1])
        .by(check=lambda text: "".join(sorted(refuse_other_letters(text))))
        .by(check=lambda text: "".join(dict.fromkeys(refuse_other_letters(text)))),
    ),
)
