"""Names as people and platforms write them: which are the same, and which only alike.

The same are spellings that differ in what Unicode calls equivalent (é in one piece or in two), in
capitals, and in spaces and signs, of which Canvas leaves none. Marks are letters here: किरण is not
करण, か is not が, Müller is not Muller. What differs in marks as well is alike, which is a question
for a person and never an answer.
"""

import difflib
from collections import defaultdict
from collections.abc import Iterable
from unicodedata import category, normalize

TEST_STUDENT = ("teststudent", "studenttest")  # whom Canvas makes for a teacher's own trials
TURKISH = str.maketrans({"I": "ı", "İ": "i"})
# Letters that have no mark to take away, as people write them where a keyboard lacks them.
PLAIN = str.maketrans({"ø": "o", "ł": "l", "ı": "i", "đ": "d", "ð": "d", "þ": "th", "æ": "ae"})


def same_id(text: str) -> str:
    """Return an id, an address or a number in the one form in which they are compared."""
    return normalize("NFC", text).strip().lower()


def name_parts(name: str) -> list[str]:
    """Return the words of a name in small letters, with marks and without signs."""
    # Before NFKC, which makes a mark of the ´ in O´Brien.
    letters = "".join(map(letter_or_space, name))
    return normalize("NFKC", letters).lower().replace("ς", "σ").split()


def letter_or_space(c: str) -> str:
    """Return a letter, mark or digit as it is, "" for what is invisible, a space for the rest."""
    kind = category(c)
    if kind == "Cf" or "\ufe00" <= c <= "\ufe0f" or c >= "\U000e0100":  # which picture to use
        return ""
    return c if kind[0] in "LMN" else " "


def spellings(name: str) -> set[str]:
    """Return a name's letters, marks and digits without spaces, in all equal spellings.

    A capital I is one of ı in Turkish, of i elsewhere.
    """
    return {"".join(name_parts(written)) for written in (name, name.translate(TURKISH))} - {""}


def name_without_marks(name: str) -> str:
    """Return a name without its marks; several people's names may be the same then."""
    plain = normalize("NFKD", "".join(name_parts(name))).translate(PLAIN).casefold()
    return "".join(c for c in plain if category(c)[0] != "M")


def did_you_mean(name: str, known: Iterable[str], closely: float = 0.6) -> str:
    """Return "; did you mean …?" with the known name that is most like this; "" if none is."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=closely)
    return f"; did you mean {near[0]}?" if near else ""


def is_test_student(name: str) -> bool:
    """True if a name is that of a platform's own test student, who is nobody."""
    return "".join(name_parts(name)) in TEST_STUDENT


def folder_name_for(name: str) -> str:
    """Return a folder's name for somebody on no roster: *Ada Lovelace* is ``ada-lovelace``."""
    text = normalize("NFC", name.strip()).lower()
    allowed = "".join(c if category(c)[0] in "LMN" or c in "@.+_" else "-" for c in text)
    return "-".join(part for part in allowed.strip(".").split("-") if part)[:100]


class NameIndex:
    """Finds people by name; who is called exactly so comes before who is called the same."""

    def __init__(self) -> None:
        self._exact, self._same, self._alike = (defaultdict(set) for _ in range(3))

    def add(self, who: str, name: str, *turned: str) -> None:
        """Add a person's name; the same name with its words in another order is not exact."""
        self._exact[exact_name(name)].add(who)
        for written in (name, *turned):
            for spelling in spellings(written):
                self._same[spelling].add(who)
            self._alike[name_without_marks(written)].add(who)

    def people_called(self, name: str) -> set[str]:
        """Return who is called so: nobody, one or, where nobody knows which, several."""
        if exact := self._exact.get(exact_name(name)):
            return set(exact)
        return set().union(*(self._same.get(spelling, ()) for spelling in spellings(name)))

    def people_called_alike(self, name: str) -> list[str]:
        """Return whose names are like this one: with other marks, or else the nearest name's."""
        unmarked = name_without_marks(name)
        names = [known_name for known_name in self._alike if known_name]
        near = (
            [unmarked]
            if unmarked in self._alike
            else difflib.get_close_matches(unmarked, names, 1, 0.75)
        )
        return sorted(self._alike[near[0]]) if near and unmarked else []


def exact_name(name: str) -> str:
    """Return a name in Unicode's composed form, with single spaces."""
    return " ".join(normalize("NFC", name).split())
