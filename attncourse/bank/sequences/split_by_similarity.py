"""The exercise ``split_by_similarity``: a split with no near-copies on both sides."""

from collections.abc import Callable
from functools import partial
from itertools import combinations

import networkx as nx
import numpy as np
from rapidfuzz.distance import Levenshtein

from attncourse import sequences as chapter
from attncourse.bank.sequences.encode_cdr3 import random_letters
from attncourse.checks.callers import split_kept, splits_made
from attncourse.checks.callers.resampling import DEFAULTS, EQUAL
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.recipes import made, mistake
from attncourse.sequences import ALPHABET

# --- cases ---------------------------------------------------------------------------------------


def distant_sequences(rng: Rng, number: int, length: int = 9) -> list[str]:
    """Return sequences at least six edits apart."""
    sequences: list[str] = []
    while len(sequences) < number:
        sequence = random_letters(rng, length)
        if all(Levenshtein.distance(sequence, earlier) > 5 for earlier in sequences):
            sequences.append(sequence)
    return sequences


def substitute(rng: Rng, text: str, *places: int) -> str:
    """Return the text with other letters at these places."""
    for place in places:
        letter = rng.choice([a for a in ALPHABET if a != text[place]])
        text = text[:place] + letter + text[place + 1 :]
    return text


def sequences_in_families(rng: Rng, family: Callable, number: int, alone: int, ordered: bool):
    """Return sequences of several families and single ones, and the family of each.

    They come in any order, or, if ``ordered``, each family as it was made.
    """
    origins = distant_sequences(rng, number + alone)
    groups = [family(rng, sequence) for sequence in origins[:number]] + [
        [sequence] for sequence in origins[number:]
    ]
    listed = [(sequence, k) for k, group in enumerate(groups) for sequence in group]
    order = range(len(listed)) if ordered else rng.permutation(len(listed))
    return [listed[i][0] for i in order], [listed[i][1] for i in order]


def with_substitution(rng: Rng, sequence: str) -> list[str]:
    return [sequence, substitute(rng, sequence, 4)]


def with_letter_in_front(rng: Rng, sequence: str) -> list[str]:
    return [sequence, random_letters(rng, 1) + sequence]


def with_deletion(rng: Rng, sequence: str) -> list[str]:
    return [sequence, sequence[:2] + sequence[3:]]


def with_letter_at_end(rng: Rng, sequence: str) -> list[str]:
    return [sequence, sequence + random_letters(rng, 1)]


def chain_of_substitutions(rng: Rng, sequence: str) -> list[str]:
    """Return sequences, each within one edit of the one before and of no other."""
    chain = [sequence]
    for place in (1, 3, 5, 7):
        chain.append(substitute(rng, chain[-1], place))
    return chain


def with_two_substitutions(rng: Rng, sequence: str) -> list[str]:
    return [sequence, substitute(rng, sequence, 2, 6)]


def three_copies(rng: Rng, sequence: str) -> list[str]:
    return [sequence, sequence, sequence]


def three_variants(rng: Rng, sequence: str) -> list[str]:
    """Return three different sequences, each within one edit of both others."""
    others: set[str] = set()
    while len(others) < 2:
        others.add(substitute(rng, sequence, 3))
    return [sequence, *sorted(others)]


def with_four_more_letters(rng: Rng, sequence: str) -> list[str]:
    return [sequence, sequence + random_letters(rng, 4)]


COPIES_TOGETHER, OTHERS_APART = "near-copies stay together", "others can be parted"
EACH_INDEX_ONCE, BOTH_SIDES_SORTED = "every index is on one side, once", "both sides are sorted"
TEST_SHARE = "the test side is as large as asked"
SEEDS_DIFFER = "other seeds give other splits"


def split_case(
    rng: Rng,
    fact_names: tuple[str, ...],
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
    texts, group = sequences_in_families(rng, family, number, alone, ordered)
    family_pairs = [(i, j) for i, j in combinations(range(len(texts)), 2) if group[i] == group[j]]
    separable_pairs = [
        p for p in family_pairs if Levenshtein.distance(*(texts[i] for i in p)) > distance
    ]
    largest = max(map(len, chapter.similarity_clusters(texts, distance)))
    chosen = tuple(int(s) for s in rng.integers(1 << 30, size=seeds))
    return Case(
        (
            fact_names,
            np.array(texts) if as_array else texts,
            {"max_distance": distance, "test_fraction": fraction},
            chosen,
        ),
        use=splits_made,
        facts=partial(
            split_kept,
            fact_names,
            len(texts),
            separable_pairs if OTHERS_APART in fact_names else family_pairs,
            fraction * len(texts),
            largest,
        ),
        note=note,
        shown=f"split_by_similarity(sequences, {distance}, {fraction}, seed) of {len(texts)}",
    )


def split_cases(*rows: tuple) -> Callable[[Rng], list[Case]]:
    """Return what makes a case of each row: facts, family, note, options."""
    return lambda rng: [
        split_case(rng, fact_names, family, note, **options)
        for fact_names, family, note, options in rows
    ]


# --- decisions and mistakes ----------------------------------------------------------------------


def connected_components(texts, near):
    graph = nx.Graph()
    graph.add_nodes_from(range(len(texts)))
    graph.add_edges_from(
        p for p in combinations(range(len(texts)), 2) if near(texts[p[0]], texts[p[1]])
    )
    return [sorted(component) for component in nx.connected_components(graph)]


def fill_test_side(clusters, n, fraction, rng):
    """Return whole clusters in random order that bring the test side nearer to its share."""
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
    link=connected_components,
    generator=np.random.default_rng,
    fill=fill_test_side,
    rest=lambda texts, test, near: sorted(set(range(len(texts))) - set(test)),
    finish=lambda train, test, texts: (np.array(train, int), np.array(sorted(test), int)),
):
    """Return ``split_by_similarity`` made of decisions."""

    def split_by_similarity(sequences, max_distance=1, test_fraction=0.2, seed=0):
        texts = [str(sequence) for sequence in sequences]

        def close(a, b):
            return near(distance(a, b), max_distance)

        clusters = link(texts, close)
        test = fill(clusters, len(texts), test_fraction, generator(seed))
        return finish(rest(texts, test, close), test, texts)

    return split_by_similarity


def each_its_own_cluster(texts, near):
    return [[i] for i in range(len(texts))]


def clusters_of_neighbours(order, texts, near):
    """Return clusters of sequences that follow one another in this order."""
    clusters = []
    for i in order:
        if clusters and near(texts[clusters[-1][-1]], texts[i]):
            clusters[-1].append(i)
        else:
            clusters.append([i])
    return clusters


def clusters_of_several(texts, near):
    """Return the clusters of several sequences."""
    return [cluster for cluster in connected_components(texts, near) if len(cluster) > 1]


def first_of_equal(texts, indices):
    """Return the indices without those of a copy of an earlier sequence."""
    return [i for i in indices if texts.index(texts[i]) == i]


def train_without_copies(texts, test, near):
    return first_of_equal(texts, sorted(set(range(len(texts))) - set(test)))


def near_first_member(texts, near):
    """Return clusters that a sequence joins only where it is near their first member."""
    clusters = []
    for i in range(len(texts)):
        home = next((c for c in clusters if near(texts[c[0]], texts[i])), None)
        home.append(i) if home else clusters.append([i])
    return clusters


def clusters_never_joined(texts, near):
    """Return clusters in which a sequence joins the first near one; two are never joined."""
    clusters = []
    for i in range(len(texts)):
        home = next((c for c in clusters if any(near(texts[j], texts[i]) for j in c)), None)
        home.append(i) if home else clusters.append([i])
    return clusters


def hamming_distance(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True)) if len(a) == len(b) else 99


def distance_by_place(a, b):
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def fraction_of_clusters(clusters, n, fraction, rng):
    order = rng.permutation(len(clusters))[: round(fraction * len(clusters))]
    return [i for k in order for i in clusters[k]]


def train_without_near(texts, test, near):
    """Return all others that are far from the test side; the near ones are left out."""
    others = sorted(set(range(len(texts))) - set(test))
    return [i for i in others if not any(near(texts[i], texts[j]) for j in test)]


def cut_clusters_to_train(clusters, n, fraction, rng):
    """Return a random test side without the clusters of which it holds a part."""
    test = set(rng.permutation(n)[: round(fraction * n)].tolist())
    return [i for cluster in clusters if set(cluster) <= test for i in cluster]


def clusters_by_size(clusters, n, fraction, rng):
    """Return a test side of clusters in the order of size, not at random."""
    return fill_test_side(sorted(clusters, key=len), n, fraction, Unshuffled())


class Unshuffled:
    def permutation(self, n):
        return range(n)


def default_fraction(clusters, n, fraction, rng):
    """Return a test side of 0.2, whatever is asked for."""
    return fill_test_side(clusters, n, 0.2, rng)


MANY_SEQUENCES = {"number": 5, "alone": 6, "seeds": 16}

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
                ((COPIES_TOGETHER,), with_substitution, "a letter exchanged", {}),
                ((COPIES_TOGETHER,), with_letter_in_front, "a letter more in front", {}),
                ((COPIES_TOGETHER,), with_deletion, "a letter less inside", {}),
                ((COPIES_TOGETHER,), with_letter_at_end, "a letter more at the end", {}),
            )
        ),
        Criterion("equal sequences, an array of them, another max_distance", 1).on(
            split_cases(
                ((COPIES_TOGETHER,), three_copies, "the same sequence three times", {"number": 3}),
                ((COPIES_TOGETHER,), with_two_substitutions, "max_distance 2", {"distance": 2}),
                ((COPIES_TOGETHER,), three_copies, "max_distance 0", {"number": 3, "distance": 0}),
                (
                    (EACH_INDEX_ONCE,),
                    three_copies,
                    "the same sequence three times",
                    {"fraction": 0.3},
                ),
                ((EACH_INDEX_ONCE,), with_substitution, "an array of strings", {"as_array": True}),
            )
        ),
        Criterion("so do chains of near-copies", 2).on(
            split_cases(
                (
                    (COPIES_TOGETHER,),
                    chain_of_substitutions,
                    "a chain of five",
                    {"number": 3, "seeds": 16},
                ),
                (
                    (COPIES_TOGETHER,),
                    chain_of_substitutions,
                    "in order",
                    {"number": 3, "seeds": 16, "ordered": True},
                ),
            )
        ),
        Criterion("others can be parted", 1).on(
            split_cases(
                ((OTHERS_APART,), with_two_substitutions, "two letters exchanged", {"seeds": 24}),
                ((OTHERS_APART,), with_four_more_letters, "four letters more", {"seeds": 24}),
                (
                    (OTHERS_APART,),
                    with_substitution,
                    "max_distance 0",
                    {"seeds": 24, "distance": 0},
                ),
            )
        ),
        Criterion("every index on one side, sorted", 2).on(
            split_cases(
                ((EACH_INDEX_ONCE,), three_variants, "", {"fraction": 0.3}),
                ((BOTH_SIDES_SORTED,), three_variants, "", {"fraction": 0.3}),
            )
        ),
        Criterion("the test side is as large as asked", 2).on(
            split_cases(
                ((TEST_SHARE,), three_variants, "half", MANY_SEQUENCES),
                (
                    (TEST_SHARE,),
                    three_variants,
                    "a fifth",
                    {**MANY_SEQUENCES, "fraction": 0.2, "seeds": 8},
                ),
                (
                    (TEST_SHARE,),
                    three_variants,
                    "four fifths",
                    {**MANY_SEQUENCES, "fraction": 0.8, "seeds": 8},
                ),
                (
                    (TEST_SHARE,),
                    with_substitution,
                    "nearly none near another",
                    {"number": 1, "alone": 22},
                ),
                ((TEST_SHARE,), with_substitution, "all in pairs", {"number": 11, "alone": 0}),
            )
        ),
        Criterion("the seed decides", 1).on(
            split_cases(
                ((EQUAL,), with_substitution, "", {"alone": 6}),
                ((SEEDS_DIFFER,), with_substitution, "", {"alone": 6}),
                ((DEFAULTS,), with_substitution, "of many", {"alone": 24, "seeds": 1}),
            )
        ),
        unchanged(),
    ),
    mistakes=made(
        compose_split_by_similarity,
        mistake("""a random split
            You shuffle single sequences, or cut a cluster to get the size right, so a near-copy of
            what was learned lands in the test. Find the clusters first, and give whole ones to a
            side.""").by(link=each_its_own_cluster),
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
            one edit too: use the Levenshtein distance.""").by(distance=hamming_distance),
        mistake("""place by place
            You count places with different letters and add the difference in length. One letter
            inserted in front shifts every place and still is a single edit: Levenshtein.
        """).by(distance=distance_by_place),
        mistake("""the ends of longer sequences are not looked at
            `zip` stops at the shorter sequence, so a sequence is near to all that begin with it.
            Letters that are missing count as edits.
        """).by(distance=lambda a, b: sum(x != y for x, y in zip(a, b, strict=False))),
        mistake("""chains of near-copies are not followed
            You compare with one member of a cluster, or ask for all to be near. A near-copy of a
            near-copy belongs to it as well: follow the chain to its end.
        """).by(link=near_first_member),
        mistake("""each sequence is compared with the next alone
            You compare neighbours in the list, as it is given or sorted. Near-copies may stand
            anywhere in it: compare all pairs.""")
        .by(link=lambda texts, near: clusters_of_neighbours(range(len(texts)), texts, near))
        .by(
            link=lambda texts, near: clusters_of_neighbours(
                sorted(range(len(texts)), key=lambda i: texts[i]), texts, near
            )
        ),
        mistake("""clusters that meet are not joined
            A sequence that is near to two clusters joins one of them, and the other stays apart. It
            makes them one: union-find, or a walk over all links.""").by(
            link=clusters_never_joined
        ),
        mistake("""a share of the clusters
            You take `test_fraction` of the clusters. They differ in size: fill the test side until
            it has `test_fraction` of the *sequences*.""").by(fill=fraction_of_clusters),
        mistake("""train and test are exchanged
            You return the test side first, or fill train with `test_fraction`. The order is
            `(train, test)`.""").by(
            finish=lambda train, test, texts: (np.array(sorted(test), int), np.array(train, int))
        ),
        mistake("""test_fraction is taken for 0.2
            You fill the test side with a fifth whatever is asked. Use `test_fraction`.
        """).by(fill=default_fraction),
        mistake("""near-copies are left out
            You drop what is near to the other side instead of moving it over. Every index is in
            train or in test.""").by(link=each_its_own_cluster, rest=train_without_near),
        mistake("""the same sequence only once
            You lose sequences that occur several times. Each keeps its own index.""")
        .by(rest=train_without_copies)
        .by(
            link=lambda texts, near: [
                first_of_equal(texts, part) for part in connected_components(texts, near)
            ],
            rest=train_without_copies,
        ),
        mistake("""sequences without a near-copy are lost
            A graph that is made of edges alone lacks whoever has none. Add all nodes first: a
            single sequence is a cluster too.""").by(
            link=clusters_of_several,
            rest=lambda texts, test, near: sorted(
                {i for part in clusters_of_several(texts, near) for i in part} - set(test)
            ),
        ),
        mistake("""clusters that a random split cuts go to train
            You draw sequences and send every cluster that is cut to train, so the test side is far
            too small. Draw whole clusters.""").by(fill=cut_clusters_to_train),
        mistake("""the seed is not used
            Other seeds give the same split. Draw the order of the clusters with
            `np.random.default_rng(seed)`.""")
        .by(generator=lambda seed: np.random.default_rng(0))
        .by(fill=clusters_by_size),
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
