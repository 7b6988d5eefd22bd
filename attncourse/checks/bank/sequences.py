"""The exercises of chapter 16, receptors and honest scores.

Splits and bootstraps are random, so they are judged by what every right one does: which sequences
stay together, which rows a statistic is given, between which of its values an interval lies. A
property that holds by chance is tried often enough: a right answer fails one with a chance below
1e-6.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations

import networkx as nx
import numpy as np
import torch
from rapidfuzz.distance import Levenshtein

from attncourse import sequences as chapter
from attncourse.checks.callers import (
    drawn_as_asked,
    interval_of,
    interval_repeated,
    intervals_drawn,
    places_taken,
    rows_resampled,
    split_kept,
    splits_made,
)
from attncourse.checks.callers.resampling import DEFAULTS, EQUAL
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import PERCENT
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.numpy_mistakes import refuse_if
from attncourse.checks.writing.recipes import made, mistake
from attncourse.sequences import ALPHABET

# --- encode_cdr3 -----------------------------------------------------------------------------


def letters(rng: Rng, n: int) -> str:
    return "".join(rng.choice(list(ALPHABET), n))


ENCODED_BY_HAND = Case(("CASSF", 7), note="C is 2, A is 1")


def some_loops(rng: Rng) -> list[Case]:
    lengths = ((9, 15), (13, 17), (1, 5), (15, 41))
    return [ENCODED_BY_HAND, *(Case((f"C{letters(rng, a)}F", b)) for a, b in lengths)]


def at_the_edges(rng: Rng) -> list[Case]:
    return [
        Case((ALPHABET, 20), note="every letter once, no padding"),
        Case((ALPHABET[::-1], 23), note="every letter once, from the last"),
        Case((f"CAS{letters(rng, 6)}", 9), note="exactly max_length letters"),
        Case(("W", 1), note="one letter"),
        Case(("AAAA", 9), note="one letter four times"),
        once_more(ENCODED_BY_HAND),
    ]


def in_lower_case(rng: Rng) -> list[Case]:
    return [Case(("casslgf", 9)), Case((f"CASs{letters(rng, 4).lower()}F", 12), note="both cases")]


def refused(*texts: tuple[str, str, int]) -> Callable[[Rng], list[Case]]:
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


def strict(text):
    refuse_if(any(letter not in ALPHABET for letter in text))
    return text


def asserted(text):
    assert set(text) <= set(ALPHABET)
    return text


def by_table(text):
    return "".join({letter: letter for letter in ALPHABET}[letter] for letter in text)


def within(text, n):
    assert len(text) <= n
    return text


def by_place(text, n):
    last = range(n)[len(text) - 1]
    return text[: last + 1]


def by_slice(text, n):
    torch.zeros(n)[: len(text)] = torch.zeros(len(text))
    return text


def numbered(text):
    return [1 + ALPHABET.index(letter) for letter in text]


def behind(ids, n):
    return ids + [0] * (n - len(ids))


@composition
def encoding(
    read=str.upper,
    check=strict,
    number=numbered,
    fit=lambda text, n: refuse_if(len(text) > n) or text,
    pad=behind,
    dtype=torch.int64,
    finish=lambda ids, n: ids,
):
    """``encode_cdr3`` made of decisions."""

    def encode_cdr3(sequence, max_length):
        text = fit(check(read(sequence)), max_length)
        return finish(torch.tensor(pad(number(text), max_length)).to(dtype), max_length)

    return encode_cdr3


def by_order(alphabet, first=1):
    """Numbers by another alphabet, 0 for a letter that it lacks."""
    return lambda text: [first + alphabet.find(letter) for letter in text]


ENCODE = Exercise(
    target="sequences.encode_cdr3",
    reference=chapter.encode_cdr3,
    section="Chapter 16, “Letters as tokens”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("ids 1 to 20, and 0 behind the end", 3).on(some_loops),
        Criterion("every letter and any length that fits", 1).on(at_the_edges),
        Criterion("lower case is read as upper", 1).on(in_lower_case),
        Criterion("refuses another letter with ValueError", 1).on(refused(*OTHER_LETTERS)),
        Criterion("refuses a longer sequence with ValueError", 1).on(refused(*TOO_LONG)),
    ),
    mistakes=made(
        encoding,
        mistake("""ids are counted from 0
            Your A is 0, and so is the padding: nobody can tell them apart. Letters are 1 to 20.
        """).by(number=by_order(ALPHABET, 0)),
        mistake("""lower case is not read
            You refuse lower case, or number it otherwise. Start from `sequence.upper()`.
        """).by(read=lambda text: text),
        mistake("""other letters are not checked
            What is no amino acid, a B say, gets an id, 0 or another. `str.find` says −1 for a
            letter that is missing and `dict.get` None or 0; `isalpha` takes B and X for letters.
            Refuse what is not in the alphabet.""")
        .by(check=lambda text: text, number=by_order(ALPHABET))
        .by(check=lambda text: refuse_if(not text.isalpha()) or text, number=by_order(ALPHABET))
        .by(
            check=lambda text: refuse_if(not (text.isalpha() and text.isascii())) or text,
            number=by_order(ALPHABET),
        )
        .by(check=lambda text: text, number=lambda t: [1 + ALPHABET.find(a) % 22 for a in t]),
        mistake("""another error than ValueError
            What has to be refused stops your function with another error: a `dict` raises KeyError,
            a place that is not there IndexError, `assert` AssertionError. Test for it and raise
            `ValueError`.""")
        .by(check=asserted)
        .by(check=by_table)
        .by(check=asserted, fit=within)
        .by(fit=within)
        .by(fit=by_place)
        .by(fit=by_slice)
        .by(check=by_table, fit=by_place)
        .by(check=by_table, fit=by_slice),
        mistake("""other letters are dropped
            You leave out letters that are not in the alphabet, and what stood beside them moves
            together. A sequence with such a letter is refused.""")
        .by(check=lambda text: "".join(a for a in text if a in ALPHABET))
        .by(check=lambda text: strict("".join(a for a in text if a not in " -*"))),
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
        .by(number=by_order("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        .by(number=by_order("ARNDCQEGHILKMFPSTWYV"))
        .by(number=by_order(ALPHABET[::-1])),
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
        .by(check=lambda text: strict(text)[1:-1])
        .by(check=lambda text: strict(text)[3:-1])
        .by(check=lambda text: strict(text)[:-1])
        .by(check=lambda text: strict(text)[1:]),
        mistake("""in another order
            Your letters are reversed, sorted or named once. Keep the order of the sequence: it is
            what attention reads with positions.""")
        .by(check=lambda text: strict(text)[::-1])
        .by(check=lambda text: "".join(sorted(strict(text))))
        .by(check=lambda text: "".join(dict.fromkeys(strict(text)))),
    ),
)

# --- split_by_similarity: cases --------------------------------------------------------------


def bases(rng: Rng, number: int, length: int = 9) -> list[str]:
    """Sequences at least six edits apart."""
    found: list[str] = []
    while len(found) < number:
        one = letters(rng, length)
        if all(Levenshtein.distance(one, other) > 5 for other in found):
            found.append(one)
    return found


def exchanged(rng: Rng, text: str, *places: int) -> str:
    """The letters at these places exchanged for others."""
    for place in places:
        other = rng.choice([a for a in ALPHABET if a != text[place]])
        text = text[:place] + other + text[place + 1 :]
    return text


def in_families(rng: Rng, family: Callable, number: int, alone: int, ordered: bool):
    """Sequences of several families and single ones, in any order, and the family of each.

    Or ordered: each family as it was made.
    """
    origins = bases(rng, number + alone)
    groups = [family(rng, one) for one in origins[:number]] + [[one] for one in origins[number:]]
    listed = [(one, k) for k, group in enumerate(groups) for one in group]
    order = range(len(listed)) if ordered else rng.permutation(len(listed))
    return [listed[i][0] for i in order], [listed[i][1] for i in order]


def substituted(rng: Rng, one: str) -> list[str]:
    return [one, exchanged(rng, one, 4)]


def lengthened(rng: Rng, one: str) -> list[str]:
    return [one, letters(rng, 1) + one]


def shortened(rng: Rng, one: str) -> list[str]:
    return [one, one[:2] + one[3:]]


def ended(rng: Rng, one: str) -> list[str]:
    return [one, one + letters(rng, 1)]


def chained(rng: Rng, one: str) -> list[str]:
    """Each within one edit of the one before, and of no other."""
    chain = [one]
    for place in (1, 3, 5, 7):
        chain.append(exchanged(rng, chain[-1], place))
    return chain


def two_apart(rng: Rng, one: str) -> list[str]:
    return [one, exchanged(rng, one, 2, 6)]


def repeated_twice(rng: Rng, one: str) -> list[str]:
    return [one, one, one]


def triple(rng: Rng, one: str) -> list[str]:
    """Three, no two of them equal: each within one edit of both others."""
    others: set[str] = set()
    while len(others) < 2:
        others.add(exchanged(rng, one, 3))
    return [one, *sorted(others)]


def prefixed(rng: Rng, one: str) -> list[str]:
    return [one, one + letters(rng, 4)]


TOGETHER, APART = "near-copies stay together", "others can be parted"
ONCE, SORTED = "every index is on one side, once", "both sides are sorted"
SHARE = "the test side is as large as asked"
OTHER = "other seeds give other splits"


def split_case(
    rng: Rng,
    asked: tuple[str, ...],
    family: Callable,
    note: str,
    *,
    number: int = 4,
    alone: int = 4,
    distance: int = 1,
    fraction: float = 0.5,
    seeds: int = 8,
    as_array: bool = False,
    ordered: bool = False,
) -> Case:
    texts, group = in_families(rng, family, number, alone, ordered)
    same = [(i, j) for i, j in combinations(range(len(texts)), 2) if group[i] == group[j]]
    parted = [p for p in same if Levenshtein.distance(*(texts[i] for i in p)) > distance]
    largest = max(map(len, chapter.similarity_clusters(texts, distance)))
    chosen = tuple(int(s) for s in rng.integers(1 << 30, size=seeds))
    return Case(
        (
            asked,
            np.array(texts) if as_array else texts,
            {"max_distance": distance, "test_fraction": fraction},
            chosen,
        ),
        use=splits_made,
        facts=partial(
            split_kept,
            asked,
            len(texts),
            parted if APART in asked else same,
            fraction * len(texts),
            largest,
        ),
        note=note,
        shown=f"split_by_similarity(sequences, {distance}, {fraction}, seed) of {len(texts)}",
    )


def split_cases(*rows: tuple) -> Callable[[Rng], list[Case]]:
    """A case for each row: family, note, and what is special."""
    return lambda rng: [
        split_case(rng, asked, family, note, **special) for asked, family, note, special in rows
    ]


# --- split_by_similarity: decisions ----------------------------------------------------------


def components(texts, near):
    graph = nx.Graph()
    graph.add_nodes_from(range(len(texts)))
    graph.add_edges_from(
        p for p in combinations(range(len(texts)), 2) if near(texts[p[0]], texts[p[1]])
    )
    return [sorted(part) for part in nx.connected_components(graph)]


def filled(clusters, n, fraction, rng):
    """Whole clusters in a random order, while the test side gets closer to its share."""
    test = []
    for k in rng.permutation(len(clusters)):
        missing = fraction * n - len(test)
        if abs(missing - len(clusters[k])) < missing:
            test += clusters[k]
    return test


@composition
def splitting(
    distance=Levenshtein.distance,
    near=lambda far, most: far <= most,
    link=components,
    generator=np.random.default_rng,
    fill=filled,
    rest=lambda texts, test, near: sorted(set(range(len(texts))) - set(test)),
    finish=lambda train, test, texts: (np.array(train, int), np.array(sorted(test), int)),
):
    """``split_by_similarity`` made of decisions."""

    def split_by_similarity(sequences, max_distance=1, test_fraction=0.2, seed=0):
        texts = [str(one) for one in sequences]

        def close(a, b):
            return near(distance(a, b), max_distance)

        clusters = link(texts, close)
        test = fill(clusters, len(texts), test_fraction, generator(seed))
        return finish(rest(texts, test, close), test, texts)

    return split_by_similarity


def each_alone(texts, near):
    return [[i] for i in range(len(texts))]


def runs(order, texts, near):
    """Clusters of sequences that follow one another in this order."""
    clusters = []
    for i in order:
        if clusters and near(texts[clusters[-1][-1]], texts[i]):
            clusters[-1].append(i)
        else:
            clusters.append([i])
    return clusters


def families(texts, near):
    """The clusters of several sequences."""
    return [part for part in components(texts, near) if len(part) > 1]


def named_once(texts, indices):
    """Of equal sequences the first alone."""
    return [i for i in indices if texts.index(texts[i]) == i]


def the_others_once(texts, test, near):
    return named_once(texts, sorted(set(range(len(texts))) - set(test)))


def around_the_first(texts, near):
    """A sequence joins the first cluster whose first member is near."""
    clusters = []
    for i in range(len(texts)):
        home = next((c for c in clusters if near(texts[c[0]], texts[i])), None)
        home.append(i) if home else clusters.append([i])
    return clusters


def never_merged(texts, near):
    """A sequence joins the first cluster with a near member; two clusters are never joined."""
    clusters = []
    for i in range(len(texts)):
        home = next((c for c in clusters if any(near(texts[j], texts[i]) for j in c)), None)
        home.append(i) if home else clusters.append([i])
    return clusters


def equal_lengths(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True)) if len(a) == len(b) else 99


def by_places(a, b):
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def of_clusters(clusters, n, fraction, rng):
    order = rng.permutation(len(clusters))[: round(fraction * len(clusters))]
    return [i for k in order for i in clusters[k]]


def without_near(texts, test, near):
    """All others that are far from the test side; the near ones are left out."""
    others = sorted(set(range(len(texts))) - set(test))
    return [i for i in others if not any(near(texts[i], texts[j]) for j in test)]


def moved_over(clusters, n, fraction, rng):
    """Drawn at random; a cluster that is cut goes to train."""
    test = set(rng.permutation(n)[: round(fraction * n)].tolist())
    return [i for cluster in clusters if set(cluster) <= test for i in cluster]


def largest_first(clusters, n, fraction, rng):
    return filled(sorted(clusters, key=len), n, fraction, Unshuffled())


class Unshuffled:
    def permutation(self, n):
        return range(n)


def other_fraction(clusters, n, fraction, rng):
    return filled(clusters, n, 0.2, rng)


MANY = {"number": 5, "alone": 6, "seeds": 16}
SPLIT = exercise(
    chapter.split_by_similarity,
    section="Chapter 16, “A split without near-copies”",
    difficulty=3,
    minutes=30,
    limit=20.0,
    excludes=(
        *(
            (f"{name} {how}", "Random: seeds are tried in turn, and the defaults against them.")
            for name in ("max_distance", "test_fraction", "seed")
            for how in ("given", "left out")
        ),
        ("the first call once more, after others", "Every seed is tried twice, after others."),
    ),
    criteria=(
        Criterion("near-copies stay on one side", 2).on(
            split_cases(
                ((TOGETHER,), substituted, "a letter exchanged", {}),
                ((TOGETHER,), lengthened, "a letter more in front", {}),
                ((TOGETHER,), shortened, "a letter less inside", {}),
                ((TOGETHER,), ended, "a letter more at the end", {}),
            )
        ),
        Criterion("equal sequences, an array of them, another max_distance", 1).on(
            split_cases(
                ((TOGETHER,), repeated_twice, "the same sequence three times", {"number": 3}),
                ((TOGETHER,), two_apart, "max_distance 2", {"distance": 2}),
                ((TOGETHER,), repeated_twice, "max_distance 0", {"number": 3, "distance": 0}),
                ((ONCE,), repeated_twice, "the same sequence three times", {"fraction": 0.3}),
                ((ONCE,), substituted, "an array of strings", {"as_array": True}),
            )
        ),
        Criterion("so do chains of near-copies", 2).on(
            split_cases(
                ((TOGETHER,), chained, "a chain of five", {"number": 3, "seeds": 16}),
                ((TOGETHER,), chained, "in order", {"number": 3, "seeds": 16, "ordered": True}),
            )
        ),
        Criterion("others can be parted", 1).on(
            split_cases(
                ((APART,), two_apart, "two letters exchanged", {"seeds": 24}),
                ((APART,), prefixed, "four letters more", {"seeds": 24}),
                ((APART,), substituted, "max_distance 0", {"seeds": 24, "distance": 0}),
            )
        ),
        Criterion("every index on one side, sorted", 2).on(
            split_cases(
                ((ONCE,), triple, "", {"fraction": 0.3}),
                ((SORTED,), triple, "", {"fraction": 0.3}),
            )
        ),
        Criterion("the test side is as large as asked", 2).on(
            split_cases(
                ((SHARE,), triple, "half", MANY),
                ((SHARE,), triple, "a fifth", {**MANY, "fraction": 0.2, "seeds": 8}),
                ((SHARE,), triple, "four fifths", {**MANY, "fraction": 0.8, "seeds": 8}),
                ((SHARE,), substituted, "nearly none near another", {"number": 1, "alone": 22}),
                ((SHARE,), substituted, "all in pairs", {"number": 11, "alone": 0}),
            )
        ),
        Criterion("the seed decides", 1).on(
            split_cases(
                ((EQUAL,), substituted, "", {"alone": 6}),
                ((OTHER,), substituted, "", {"alone": 6}),
                ((DEFAULTS,), substituted, "of many", {"alone": 24, "seeds": 1}),
            )
        ),
        unchanged(),
    ),
    mistakes=made(
        splitting,
        mistake("""a random split
            You shuffle single sequences, or cut a cluster to get the size right, so a near-copy of
            what was learned lands in the test. Find the clusters first, and give whole ones to a
            side.""").by(link=each_alone),
        mistake("""identical sequences alone are kept together
            You put equal sequences together and let those one edit apart go where they like. Two
            belong together at an edit distance of at most `max_distance`.
        """).by(near=lambda far, most: far == 0),
        mistake("""max_distance itself is too far
            You compare with `<`. At a distance of exactly `max_distance` two sequences still belong
            together: `<=`.""").by(near=lambda far, most: far < most),
        mistake("""clusters are too wide
            You join sequences further apart than `max_distance`, and clusters grow together that
            should not.""")
        .by(near=lambda far, most: far <= most + 1)
        .by(distance=Levenshtein.normalized_distance)
        .by_any(lambda more: {"near": lambda far, most: far <= most + more}, (1, 2, 3)),
        mistake("""max_distance is taken for 1
            You join what is one edit apart whatever `max_distance` says. Compare with the
            argument.""").by(near=lambda far, most: far <= 1),
        mistake("""sequences of other lengths are never near
            You compare letters place by place and only for equal lengths. A letter more or less is
            one edit too: use the Levenshtein distance.""").by(distance=equal_lengths),
        mistake("""place by place
            You count places with different letters and add the difference in length. One letter
            inserted in front shifts every place and still is a single edit: Levenshtein.
        """).by(distance=by_places),
        mistake("""the ends of longer sequences are not looked at
            `zip` stops at the shorter sequence, so a sequence is near to all that begin with it.
            Letters that are missing count as edits.
        """).by(distance=lambda a, b: sum(x != y for x, y in zip(a, b, strict=False))),
        mistake("""chains of near-copies are not followed
            You compare with one member of a cluster, or ask for all to be near. A near-copy of a
            near-copy belongs to it as well: follow the chain to its end.
        """).by(link=around_the_first),
        mistake("""each sequence is compared with the next alone
            You compare neighbours in the list, as it is given or sorted. Near-copies may stand
            anywhere in it: compare all pairs.""")
        .by(link=lambda texts, near: runs(range(len(texts)), texts, near))
        .by(
            link=lambda texts, near: runs(
                sorted(range(len(texts)), key=lambda i: texts[i]), texts, near
            )
        ),
        mistake("""clusters that meet are not joined
            A sequence that is near to two clusters joins one of them, and the other stays apart. It
            makes them one: union-find, or a walk over all links.""").by(link=never_merged),
        mistake("""a share of the clusters
            You take `test_fraction` of the clusters. They differ in size: fill the test side until
            it has `test_fraction` of the *sequences*.""").by(fill=of_clusters),
        mistake("""train and test are exchanged
            You return the test side first, or fill train with `test_fraction`. The order is
            `(train, test)`.""").by(
            finish=lambda train, test, texts: (np.array(sorted(test), int), np.array(train, int))
        ),
        mistake("""test_fraction is taken for 0.2
            You fill the test side with a fifth whatever is asked. Use `test_fraction`.
        """).by(fill=other_fraction),
        mistake("""near-copies are left out
            You drop what is near to the other side instead of moving it over. Every index is in
            train or in test.""").by(link=each_alone, rest=without_near),
        mistake("""the same sequence only once
            You lose sequences that occur several times. Each keeps its own index.""")
        .by(rest=the_others_once)
        .by(
            link=lambda texts, near: [named_once(texts, part) for part in components(texts, near)],
            rest=the_others_once,
        ),
        mistake("""sequences without a near-copy are lost
            A graph that is made of edges alone lacks whoever has none. Add all nodes first: a
            single sequence is a cluster too.""").by(
            link=families,
            rest=lambda texts, test, near: sorted(
                {i for part in families(texts, near) for i in part} - set(test)
            ),
        ),
        mistake("""clusters that a random split cuts go to train
            You draw sequences and send every cluster that is cut to train, so the test side is far
            too small. Draw whole clusters.""").by(fill=moved_over),
        mistake("""the seed is not used
            Other seeds give the same split. Draw the order of the clusters with
            `np.random.default_rng(seed)`.""")
        .by(generator=lambda seed: np.random.default_rng(0))
        .by(fill=largest_first),
        mistake("""another split at every call
            The same seed gives another split each time. Make the generator from the seed, and mind
            that a `set` of strings has another order in every session.
        """).by(generator=lambda seed: np.random.default_rng()),
        mistake("""a side is not sorted
            Your indices stand in the order in which they were drawn. Sort each side.""").by(
            finish=lambda train, test, texts: (np.array(train, int), np.array(test[::-1], int))
        ),
        mistake("""sequences, not indices
            You return the sequences themselves. Labels have to be split as well: return where they
            stand, as arrays of indices.""").by(
            finish=lambda train, test, texts: (
                np.array([texts[i] for i in train]),
                np.array([texts[i] for i in sorted(test)]),
            )
        ),
        mistake("""masks, not indices
            You return arrays of True and False. Return the indices, `np.flatnonzero(mask)`.""").by(
            finish=lambda train, test, texts: (
                np.isin(np.arange(len(texts)), train),
                np.isin(np.arange(len(texts)), test),
            )
        ),
    ),
)

# --- balanced_accuracy -----------------------------------------------------------------------


def answers(rng: Rng, n: int, classes: int, others: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of unequal frequency, each class in them, and predictions that are often right."""
    common = np.arange(1, classes + 1) ** 1.5
    labels = rng.choice(classes, n, p=common / common.sum())
    labels[:classes] = np.arange(classes)
    guesses = np.where(rng.random(n) < 0.6, labels, rng.integers(classes + others, size=n))
    return labels, guesses


BALANCED_BY_HAND = Case(
    (np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 0])), note="recalls 3/4 and 1/2"
)


def as_letters(labels):
    return np.array(["flu", "cmv", "ebv", "hiv", "hcv"])[labels]


def balanced_cases(rng: Rng) -> list[Case]:
    return [
        BALANCED_BY_HAND,
        Case(answers(rng, 41, 3)),
        Case(answers(rng, 23, 2), note="two classes"),
        Case(answers(rng, 97, 5), note="five classes"),
        Case((np.array([0] * 9 + [1]), np.zeros(10, int)), note="always the larger class"),
    ]


def balanced_edges(rng: Rng) -> list[Case]:
    labels, guesses = answers(rng, 31, 3)
    return [
        Case((labels[labels < 2], guesses[labels < 2]), note="a class that is only predicted"),
        Case(answers(rng, 37, 3, others=2), note="predictions of classes that no label has"),
        Case((np.array([5, 9, 9, 40]), np.array([5, 9, 5, 40])), note="classes 5, 9 and 40"),
        Case((np.array([-1, 1, 1, -1, 1]), np.array([-1, 1, -1, 1, 1])), note="classes −1 and 1"),
        Case((np.array([0, 0, 1]), np.array([1, 1, 0])), note="nothing right"),
        once_more(BALANCED_BY_HAND),
    ]


def balanced_kinds(rng: Rng) -> list[Case]:
    labels, guesses = answers(rng, 19, 4)
    return [
        Case((as_letters(labels), as_letters(guesses)), note="classes are strings"),
        Case((as_letters(labels).tolist(), as_letters(guesses).tolist()), note="lists of strings"),
        Case((labels.tolist(), guesses.tolist()), note="lists of numbers"),
        Case((labels > 1, guesses > 1), note="True and False"),
        Case((np.array([2, 2, 2, 2]), np.array([2, 0, 2, 2])), note="one class"),
        Case((np.array([1]), np.array([1])), note="one prediction"),
    ]


@composition
def balancing(
    read=lambda labels, guesses: (np.asarray(labels), np.asarray(guesses)),
    classes=lambda labels, guesses: np.unique(labels),
    recall=lambda labels, guesses, c: np.mean(guesses[labels == c] == c),
    gather=np.mean,
    finish=lambda value, recalls: float(value),
):
    """``balanced_accuracy`` made of decisions."""

    def balanced_accuracy(labels, predictions):
        labels, guesses = read(labels, predictions)
        recalls = np.array([recall(labels, guesses, c) for c in classes(labels, guesses)])
        return finish(gather(recalls), recalls)

    return balanced_accuracy


def plainly(labels, guesses, c):
    return np.mean(labels == guesses)


def safely(hits, of):
    return hits / of if of else 0.0


def precision(labels, guesses, c):
    return safely(np.sum((labels == c) & (guesses == c)), np.sum(guesses == c))


def f_one(labels, guesses, c):
    return safely(
        2 * np.sum((labels == c) & (guesses == c)), np.sum(labels == c) + sum(guesses == c)
    )


def recall_or_zero(labels, guesses, c):
    return safely(np.sum((labels == c) & (guesses == c)), np.sum(labels == c))


def each_against_rest(labels, guesses, c):
    return np.mean((labels == c) == (guesses == c))


def one_and_the_rest(place, exactly=False):
    """Labels and predictions in two classes; ``exactly``: of the rest the very class counts."""

    def read(labels, guesses):
        labels, guesses = np.asarray(labels), np.asarray(guesses)
        own = labels == np.unique(labels)[place]
        told = own == (labels == guesses) if exactly else guesses == np.unique(labels)[place]
        return own, told

    return read


def both_sides(labels, guesses, c):
    """The mean of a class's recall and that of all the rest."""
    rest = labels != c
    of_rest = np.mean(guesses[rest] != c) if rest.any() else 1.0
    return (np.mean(guesses[labels == c] == c) + of_rest) / 2


BALANCED = exercise(
    chapter.balanced_accuracy,
    section="Chapter 16, “A score that a guess cannot win”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("the mean of the classes' recalls", 3).on(balanced_cases),
        Criterion("the classes are those of the labels", 2).on(balanced_edges),
        Criterion("numbers or strings, arrays or lists; one class", 1).on(balanced_kinds),
        unchanged(),
    ),
    mistakes=made(
        balancing,
        mistake("""plain accuracy
            You count right answers among all, so the larger class decides. Take the share of right
            answers in each class, then the mean of these.""").by(recall=plainly),
        mistake("""precision, not recall
            You divide by how often a class was *predicted*, or labels and predictions are
            exchanged. Divide by how often it is the label.""")
        .by(recall=precision)
        .by(recall=lambda labels, guesses, c: np.mean(labels[guesses == c] == c))
        .by(read=lambda labels, guesses: (np.asarray(guesses), np.asarray(labels))),
        mistake("""a class is left out
            Your loop over the classes misses the first of them or the last. Each class that occurs
            in `labels` has a recall, and all of them are averaged.""")
        .by(gather=lambda recalls: recalls[:-1].sum() / len(recalls))
        .by(gather=lambda recalls: recalls[1:].sum() / len(recalls))
        .by(gather=lambda recalls: recalls[:-1].mean())
        .by(gather=lambda recalls: recalls[1:].mean()),
        mistake("""what is wrong is counted
            You count the sequences of a class that were *not* predicted as it. Recall is the share
            of those that were.
        """).by(recall=lambda labels, guesses, c: np.mean(guesses[labels == c] != c)),
        mistake("""classes that are only predicted count too
            You average over classes that no label has; their recall is 0/0. Take
            `np.unique(labels)`.""")
        .by(classes=lambda labels, guesses: np.union1d(labels, guesses), recall=recall_or_zero)
        .by(classes=lambda a, b: np.union1d(a, b)),
        mistake("""classes from the predictions
            You go through the classes that were predicted and miss those that were never. Take
            `np.unique(labels)`.""")
        .by(classes=lambda labels, guesses: np.unique(guesses), recall=recall_or_zero)
        .by(classes=lambda labels, guesses: np.unique(guesses))
        .by(classes=np.intersect1d),
        mistake("""classes 0 to the largest
            You go through 0, 1, 2, … up to the largest label, as `np.bincount` does. Classes that
            no label has have no recall, and classes may be strings.""")
        .by(classes=lambda labels, guesses: range(int(labels.max()) + 1), recall=recall_or_zero)
        .by(classes=lambda labels, guesses: range(int(labels.max()) + 1))
        .by(classes=lambda labels, guesses: sorted({*range(int(labels.max()) + 1)} & {*labels})),
        mistake("""two classes alone
            You average two recalls, of 0 and of 1 or of one class and of all the rest: sensitivity
            and specificity. There may be any number of classes, with any names, and each has a
            recall of its own.""")
        .by(classes=lambda labels, guesses: (0, 1), recall=recall_or_zero)
        .by(classes=lambda labels, guesses: (0, 1))
        .by(classes=lambda labels, guesses: np.unique(labels)[:2])
        .by(read=one_and_the_rest(-1))
        .by(read=one_and_the_rest(0))
        .by(read=one_and_the_rest(-1, exactly=True))
        .by(read=one_and_the_rest(0, exactly=True)),
        mistake("""another mean
            The recalls are averaged plainly: their sum over their number. Yours is a geometric or
            harmonic mean, a median or the least.""")
        .by(gather=np.min)
        .by(gather=np.median)
        .by(gather=lambda r: r.prod() ** (1 / len(r)))
        .by(gather=lambda r: len(r) / (1 / np.maximum(r, 1e-12)).sum()),
        mistake("""the recalls are added
            You return the sum of the recalls. Divide by the number of classes.
        """).by(gather=np.sum),
        mistake("""F1, not recall
            You take the F1 score of each class, which mixes in precision. Only recall is asked.
        """).by(recall=f_one),
        mistake("""each class against the rest
            You take the accuracy of “this class or not”, which counts the others' agreement too.
            Look only where the label is the class.""")
        .by(recall=each_against_rest)
        .by(recall=both_sides),
        mistake("""corrected for chance
            You rescale so that a guess has 0. The plain mean recall is asked: a guess has
            1/classes.""")
        .by(
            finish=lambda value, recalls: float(
                (value - 1 / len(recalls)) / max(1 - 1 / len(recalls), 1e-9)
            )
        )
        .by(
            finish=lambda value, recalls: float(
                (value * len(recalls) - 1) / (len(recalls) - 1) if len(recalls) > 1 else value
            )
        ),
        mistake("""the hits of a class among all
            You divide the hits of each class by the number of all sequences. Divide by how many
            have this label.
        """).by(recall=lambda labels, guesses, c: np.mean((labels == c) & (guesses == c))),
        mistake("""divided in whole numbers
            `//` gives whole numbers: a recall below 1 becomes 0. A share is divided with `/`.
        """).by(recall=lambda labels, guesses, c: recall_or_zero(labels, guesses, c) // 1),
        mistake("""the recalls, not their mean
            You return a number for each class. Average them.
        """).by(finish=lambda value, recalls: recalls),
        mistake("""the largest class alone
            You return the recall of one class, the commonest. Every class counts.""").by(
            classes=lambda labels, guesses: [
                max(np.unique(labels).tolist(), key=labels.tolist().count)
            ]
        ),
        mistake("""lists are compared as a whole
            `labels == predictions` of two lists is one True or False. Begin with `np.asarray`.""")
        .by(
            read=lambda labels, guesses: (
                (labels, guesses)
                if isinstance(labels, np.ndarray)
                else (np.array([0, 1]), np.array([0, 0]))
            )
        )
        .by(read=lambda labels, guesses: (labels, guesses)),
    ),
)

# --- bootstrap_interval ----------------------------------------------------------------------

NUMBER, SIZE = "as many resamples as asked", "each has as many rows as the sample"
REPLACED, DIFFER = "rows are drawn with replacement", "resamples differ"
EVENLY, TOGETHER_TOO = "every row is drawn as often", "the arrays are resampled together"


def rows_case(
    rng: Rng, asked: tuple, n: int, kinds: tuple = ("array",), note: str = "", **options
) -> Case:
    named = "".join(f", {name}={value}" for name, value in options.items())
    shown = f"bootstrap_interval(statistic, {', '.join(kinds)}{named}, rng=rng), {n} rows"
    seed = int(rng.integers(1 << 30))
    facts = partial(drawn_as_asked, asked, n, options.get("n_resamples", 1000))
    return Case((n, options, kinds, seed), use=rows_resampled, facts=facts, note=note, shown=shown)


def resampled_rows(rng: Rng) -> list[Case]:
    few = {"n_resamples": 100}
    return [
        rows_case(rng, (SIZE,), 12, **few),
        rows_case(rng, (REPLACED,), 12, **few),
        rows_case(rng, (DIFFER,), 12, **few),
        rows_case(rng, (EVENLY,), 7, n_resamples=400),
    ]


def resampled_together(rng: Rng) -> list[Case]:
    few = {"n_resamples": 60}
    return [
        rows_case(rng, (TOGETHER_TOO,), 12, ("array", "array"), **few),
        rows_case(rng, (TOGETHER_TOO, SIZE), 11, ("words", "matrix"), "a matrix by rows", **few),
        rows_case(rng, (TOGETHER_TOO, SIZE), 9, ("array", "list", "array"), "a list", **few),
    ]


def resampled_often(rng: Rng) -> list[Case]:
    return [
        rows_case(rng, (NUMBER,), 5, n_resamples=37),
        rows_case(rng, (NUMBER,), 5, n_resamples=150),
        rows_case(rng, (NUMBER,), 5, note="1000 unless given"),
    ]


def place_case(rng: Rng, level: float | None, n: int = 600, note: str = "") -> Case:
    said = "" if level is None else f", level={level}"
    shown = (
        f"bootstrap_interval(statistic{said}, n_resamples={n}) where the statistic is 0, 1, …, "
        f"{n - 1} in some order, over {n}"
    )
    return Case((n, level, int(rng.integers(1 << 30))), use=places_taken, note=note, shown=shown)


def quantiles_asked(rng: Rng) -> list[Case]:
    return [
        place_case(rng, 0.9),
        place_case(rng, 0.5),
        place_case(rng, 0.8, 1200),
        place_case(rng, 0.98),
        place_case(rng, None, note="0.95 unless given"),
    ]


def known_intervals(rng: Rng) -> list[Case]:
    x = np.arange(9.0)
    once = {"n_resamples": 30}
    rows = (
        ("mean", (np.full(7, 2.5),), "all entries are 2.5"),
        ("largest_gap", (x, x), "two arrays that are equal"),
    )
    # Two resamples in three hold the last row.
    rare = (
        "largest",
        (np.array([0.0] * 8 + [1.0]),),
        "0 in one resample of three, 1 in the others",
    )
    return [
        *(interval_case(*row, **once) for row in rows),
        interval_case(*rare, n_resamples=200),
    ]


def interval_case(name: str, arrays: tuple, note: str, **options) -> Case:
    return Case(
        (name, arrays, options, 3),
        use=interval_of,
        note=note,
        shown="bootstrap_interval(statistic, *arrays)",
    )


def of_one_row(rng: Rng) -> list[Case]:
    return [
        rows_case(rng, (SIZE, EVENLY), 1, note="one row", n_resamples=60),
        interval_case("mean", (np.array([4.0]),), "one row", n_resamples=30),
        interval_case(
            "number_of_rows", (np.arange(9.0),), "the statistic is an int", n_resamples=30
        ),
    ]


def by_generators(rng: Rng) -> list[Case]:
    seeds = tuple(int(s) for s in rng.integers(1 << 30, size=2))
    shown = "bootstrap_interval(np.mean, x, rng=rng)"
    return [Case((seeds, 41), use=intervals_drawn, facts=interval_repeated, shown=shown)]


def quantiles_of(found, level):
    return np.quantile(found, [(1 - level) / 2, (1 + level) / 2])


@composition
def bootstrapping(
    generator=lambda rng: np.random.default_rng() if rng is None else rng,
    count=lambda arrays: len(arrays[0]),
    rows=lambda rng, n: rng.integers(n, size=n),
    choose=lambda rng, rows, n, k: [rows(rng, n)] * k,
    pick=lambda array, rows: np.asarray(array)[rows],
    often=lambda n: n,
    ends=quantiles_of,
    defaults=(0.95, 1000),
    whole=lambda value, found, level: found,
):
    """``bootstrap_interval`` made of decisions."""

    def bootstrap_interval(statistic, *arrays, level=None, n_resamples=None, rng=None):
        level = defaults[0] if level is None else level
        n_resamples = defaults[1] if n_resamples is None else n_resamples
        rng, n, k = generator(rng), count(arrays), len(arrays)
        found = []
        for _ in range(often(n_resamples)):
            chosen = choose(rng, rows, n, k)
            found.append(statistic(*(pick(a, r) for a, r in zip(arrays, chosen, strict=True))))
        found = np.asarray(whole(lambda: statistic(*arrays), found, level), dtype=float)
        low, high = ends(found, level)
        return float(low), float(high)

    return bootstrap_interval


def by_deviation(found, level):
    half = np.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64))) * found.std()
    return found.mean() - half, found.mean() + half


def by_standard_error(found, level):
    """1.96 times the deviation over the root of the number of resamples, which shrinks with it."""
    half = 1.96 * found.std() / len(found) ** 0.5
    return found.mean() - half, found.mean() + half


def middle_and_half(found, level):
    low, high = quantiles_of(found, level)
    return (low + high) / 2, (high - low) / 2


def moved_to(found, value):
    """The numbers, moved so that their mean lies as far on the other side of the value."""
    found = np.asarray(found, dtype=float)
    return found - (found.mean() - value)


class DrawnOnce:
    """A generator that draws rows once for all resamples of a call."""

    def __init__(self, rng):
        self.rng = np.random.default_rng() if rng is None else rng
        self.rows = None

    def integers(self, n, size):
        if self.rows is None:
            self.rows = self.rng.integers(n, size=size)
        return self.rows


class DrawnFromTheLast:
    """A generator whose rows are those of a resample of the resample before."""

    def __init__(self, rng):
        self.rng = np.random.default_rng() if rng is None else rng
        self.rows = None

    def integers(self, n, size):
        drawn = self.rng.integers(n, size=size)
        self.rows = drawn if self.rows is None else self.rows[drawn]
        return self.rows


BOOTSTRAP = exercise(
    chapter.bootstrap_interval,
    section="Chapter 16, “How sure is a score?”",
    difficulty=3,
    minutes=20,
    excludes=(
        *(
            (f"{name} {how}", "Random: the callers give it or leave it out, by the text's rules.")
            for name in ("level", "n_resamples", "rng")
            for how in ("given", "left out")
        ),
        ("the first call once more, after others", "Each generator is made and used twice."),
    ),
    criteria=(
        Criterion("resamples as many rows as there are, with replacement", 2).on(resampled_rows),
        Criterion("draws the same rows from every array", 2).on(resampled_together),
        Criterion("n_resamples, 1000 unless given", 1).on(resampled_often),
        Criterion("lies between the quantiles of the level", 2).on(quantiles_asked),
        Criterion("intervals that are known", 1).on(known_intervals),
        Criterion("a sample of one row, a statistic that is an int", 1).on(of_one_row),
        Criterion("the generator decides", 1).on(by_generators),
        unchanged(),
    ),
    mistakes=made(
        bootstrapping,
        mistake("""drawn without replacement
            Your resamples hold every row once, shuffled or not, so the statistic never changes.
            Draw with replacement, `rng.integers(n, size=n)`, and hand over the rows drawn.""")
        .by(rows=lambda rng, n: rng.permutation(n))
        .by(pick=lambda array, rows: np.asarray(array)),
        mistake("""each array has rows of its own
            You draw new rows for every array, or for the first alone, and a prediction meets
            another receptor's label. Draw once for each resample, and pick these rows from all.""")
        .by(choose=lambda rng, rows, n, k: [rows(rng, n) for _ in range(k)])
        .by(choose=lambda rng, rows, n, k: [rows(rng, n), *[np.arange(n)] * (k - 1)]),
        mistake("""the entries are drawn, not the rows
            An array with several axes is flattened, as `np.take` and `np.ravel` do, and you draw
            single numbers of it. Rows are along the first axis: `array[rows]`.
        """).by(pick=lambda array, rows: np.ravel(array)[rows]),
        mistake("""lists, not arrays
            You hand the statistic lists of rows. It gets arrays: `np.asarray(array)[rows]`.
        """).by(pick=lambda array, rows: [array[i] for i in rows]),
        mistake("""mirrored at the sample's own value
            You take 2 · t − quantile, t being the statistic of the sample itself: the basic
            bootstrap. The ends asked for are the quantiles themselves.
        """).by(whole=lambda value, found, level: 2 * value() - np.asarray(found, dtype=float)),
        mistake("""resamples of another size
            Your resamples have fewer rows than the sample, or more. How much a score varies depends
            on that: draw as many as there are.""")
        .by(rows=lambda rng, n: rng.integers(n, size=max(1, n // 2)))
        .by(rows=lambda rng, n: rng.integers(n, size=max(1, n - 1)))
        .by(rows=lambda rng, n: rng.integers(n, size=max(1, round(0.632 * n))))
        .by(rows=lambda rng, n: rng.permutation(n)[: max(1, n // 2)])
        .by(rows=lambda rng, n: rng.integers(n, size=n // 2 + 1))
        .by(rows=lambda rng, n: rng.integers(n, size=n + 1))
        .by(rows=lambda rng, n: np.delete(np.arange(n), rng.integers(n)) if n > 1 else [0]),
        mistake("""the number of arrays is taken for that of rows
            `len(arrays)` says how many arrays came. The rows are those of each: `len(arrays[0])`.
        """).by(count=len),
        mistake("""a row is never drawn
            `rng.integers(low, high)` excludes its upper end: with `n − 1`, or from 1, one row never
            comes. `rng.integers(n, size=n)` draws 0 to n − 1.""")
        .by(rows=lambda rng, n: rng.integers(max(1, n - 1), size=n))
        .by(rows=lambda rng, n: rng.integers(min(1, n - 1), n, size=n))
        .by(rows=lambda rng, n: rng.integers(n - 1, size=n))
        .by(rows=lambda rng, n: rng.integers(0, n - 1, size=n))
        .by(rows=lambda rng, n: rng.integers(1, n, size=n)),
        mistake("""resamples are not drawn anew from the sample
            You draw rows before the loop, so all resamples are the same, or you draw each resample
            from the one before, so that rows die out. Draw inside the loop, from what came in.""")
        .by(generator=DrawnOnce)
        .by(generator=DrawnFromTheLast),
        mistake("""another number of resamples
            You call the statistic another number of times than `n_resamples`.""")
        .by(often=lambda n: 1000)
        .by_any(lambda number: {"often": lambda n: number}, (100, 200, 500, 1000, 2000)),
        mistake("""another default for n_resamples
            Without `n_resamples` there are 1000 resamples.""")
        .by(defaults=(0.95, 100))
        .by(defaults=(0.95, 10000))
        .by(defaults=(0.95, 500))
        .by(defaults=(0.95, 2000)),
        mistake("""another default for the level
            Without `level` it is 0.95.""")
        .by(defaults=(0.9, 1000))
        .by(defaults=(0.99, 1000))
        .by(defaults=(0.68, 1000)),
        mistake("""both tails get the whole of 1 − level
            You cut 1 − level at each end, twice too much. Share it: (1 − level)/2 below and as much
            above.""").by(ends=lambda found, level: np.quantile(found, [1 - level, level])),
        mistake("""1 − level and level are exchanged
            You take the middle (1 − level) of the values. The interval holds `level` of them.
        """).by(ends=lambda found, level: np.quantile(found, [level / 2, 1 - level / 2])),
        mistake("""percent and shares are mixed up
            `np.percentile` counts in percent, from 0 to 100, `np.quantile` from 0 to 1. Yours takes
            nearly the least value.
        """).by(ends=lambda found, level: np.percentile(found, [(1 - level) / 2, (1 + level) / 2])),
        mistake("""from the least to the largest
            You return the extremes, which grow apart with the number of resamples. Take
            quantiles.""").by(ends=lambda found, level: (found.min(), found.max())),
        mistake("""mean ± deviations
            You return the mean of the resamples give or take some standard deviations, as for a
            normal distribution. The percentile interval takes their quantiles.""")
        .by(ends=by_deviation)
        .by(
            ends=lambda found, level: (
                found.mean() - 1.96 * found.std(),
                found.mean() + 1.96 * found.std(),
            )
        )
        .by(ends=lambda found, level: (found.mean() - found.std(), found.mean() + found.std()))
        .by(ends=by_standard_error),
        mistake("""distances in place of values
            You return how far the quantiles lie from the sample's own value, or the middle and half
            of the width. The two ends themselves are asked for, low and high.""")
        .by(whole=lambda value, found, level: np.asarray(found, dtype=float) - value())
        .by(ends=middle_and_half),
        mistake("""the interval is moved
            You correct the ends by the difference of the resamples' mean and the sample's value.
            The ends asked for are the quantiles as they are.
        """).by(whole=lambda value, found, level: moved_to(found, value())),
        mistake("""one tail is cut
            You cut 1 − level off one end and nothing off the other. Each end loses half of it.""")
        .by(ends=lambda found, level: (np.quantile(found, 1 - level), found.max()))
        .by(ends=lambda found, level: (found.min(), np.quantile(found, level))),
        mistake("""the high end first
            You return (high, low). The low end comes first.
        """).by(ends=lambda found, level: quantiles_of(found, level)[::-1]),
        mistake("""the level is not used
            Your interval is the same for every level. Its ends are the quantiles (1 − level)/2 and
            (1 + level)/2.""")
        .by(ends=lambda found, level: np.quantile(found, [0.025, 0.975]))
        .by(ends=lambda found, level: np.quantile(found, [0.05, 0.95])),
        mistake("""the generator is not used
            You draw with a generator of your own, or NumPy's global one, although `rng` is given.
            Draw with `rng`.""").by(generator=lambda rng: np.random.default_rng()),
        mistake("""the same numbers at every call
            Your generator begins at a fixed seed, so every call draws the same rows. Use `rng`
            where it is given, and `np.random.default_rng()` without a seed where not.""")
        .by(generator=lambda rng: np.random.default_rng(0))
        .by(generator=lambda rng: np.random.default_rng(0) if rng is None else rng),
        mistake("""one resample too few
            You draw one resample fewer than `n_resamples`.""").by(often=lambda n: n - 1),
    ),
)

EXERCISES = (ENCODE, SPLIT, BALANCED, BOOTSTRAP)

VARIANTS = (
    Variant(
        "percent",
        "The result is in **percent** here: 100 where every answer is right, and not 1.",
        "the accuracy is in percent here",
        "Your answer is a share from 0 to 1, as in the book and in its published answers. In this "
        "assignment it is in percent: 100 times as much.",
        {"balanced_accuracy": Adapter(result=PERCENT)},
        rewordings("""
            a number from 0 to 1: for each class, the share
            → a number from 0 to 100: for each class, the percentage
            (3/4 + 1/2)/2, so expect 0.625 → (75 + 50)/2, so expect 62.5
            a guess has 1/classes → a guess has 100/classes
        """),
    ),
)
