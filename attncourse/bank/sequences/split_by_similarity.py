"""The exercise ``split_by_similarity``: a split with no near-copies on both sides."""

from collections.abc import Callable
from functools import partial
from itertools import combinations

import networkx as nx
import numpy as np
from rapidfuzz.distance import Levenshtein

from attncourse import sequences as chapter
from attncourse.bank.sequences.encode_cdr3 import letters
from attncourse.checks.callers import split_kept, splits_made
from attncourse.checks.callers.resampling import DEFAULTS, EQUAL
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.recipes import made, mistake
from attncourse.sequences import ALPHABET

# --- cases ---------------------------------------------------------------------------------------


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


# --- decisions and mistakes ----------------------------------------------------------------------


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
def compose_split_by_similarity(
    distance=Levenshtein.distance,
    near=lambda far, most: far <= most,
    link=components,
    generator=np.random.default_rng,
    fill=filled,
    rest=lambda texts, test, near: sorted(set(range(len(texts))) - set(test)),
    finish=lambda train, test, texts: (np.array(train, int), np.array(sorted(test), int)),
):
    """Return ``split_by_similarity`` made of decisions."""

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

# --- the exercise --------------------------------------------------------------------------------
EXERCISE = exercise(
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
        compose_split_by_similarity,
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
