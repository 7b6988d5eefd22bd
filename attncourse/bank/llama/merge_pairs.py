"""The exercise ``merge_pairs``: symbols joined pair by pair.

An answer is tried with ranks such as learning gives them: a pair is ranked after those that its
parts are made of.
"""

from collections import Counter
from itertools import pairwise

from attncourse import llama
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

Pair = tuple[str, str]


def random_words_and_ranks(
    rng: Rng, letters: str, lengths: list[int], n: int
) -> tuple[list[list[str]], dict]:
    """Return random words, and the ranks of n merges drawn from the pairs in them."""
    words = [list(map(str, rng.choice(list(letters), length))) for length in lengths]
    texts, ranks = words, {}
    for _ in range(n):
        made_of = {"".join(pair) for pair in ranks} | set(letters)
        pairs = {p for w in texts for p in pairwise(w)}
        new = sorted(p for p in pairs if "".join(p) not in made_of)
        if not new:
            break
        pair = new[rng.integers(len(new))]
        ranks[pair] = len(ranks)
        texts = [joined_everywhere(word, pair) for word in texts]
    return words, ranks


def joined_everywhere(symbols: list[str], pair: Pair) -> list[str]:
    """Return the symbols with this pair joined wherever it stands, from left to right."""
    out: list[str] = []
    for symbol in symbols:
        if out and (out[-1], symbol) == pair and not isinstance(out[-1], Joined):
            out[-1] = Joined(out[-1] + symbol)
        else:
            out.append(symbol)
    return [str(symbol) for symbol in out]


class Joined(str):
    """A symbol that this round made: it is no part of another pair before the next one."""

    __slots__ = ()


def long_words(rng: Rng) -> list[Case]:
    """Return cases of long words of few letters with many merges, and of other words."""
    cases = []
    for letters, lengths, n in (("abc", (23, 29), 9), ("abcd", (31, 19), 14), ("ab", (17, 13), 6)):
        words, ranks = random_words_and_ranks(rng, letters, list(lengths), n)
        words += [list(map(str, rng.choice(list(letters), 37)))]
        shuffled = list(ranks)
        rng.shuffle(shuffled)  # a dictionary's order says nothing
        ranks = {tuple(map(str, pair)): ranks[tuple(pair)] for pair in shuffled}
        cases += [Case((word, dict(ranks))) for word in words]
    runs = {("a", "a"): 0, ("a", "b"): 1, ("aa", "ab"): 2}  # in no draw may these be missing
    return [*cases, Case((list("aaab" * 7), runs))]


# Words as letters 0, 1, 2, …, and their merges in the order of ranks.
BY_RANK = (
    ("012", "1+2 0+1", "the lower rank on the right"),
    ("012", "0+1 1+2", "the lower rank on the left"),
    ("012312", "0+1 1+2", "the higher rank twice"),
    ("01234", "2+3 0+1 1+2 01+23", "four merges"),
    ("3120", "1+2 3+1 2+0", "the lowest rank in the middle"),
)
CHAINS = (
    ("0123", "0+1 01+2 012+3", "each joined symbol again"),
    ("4012", "1+2 0+12 4+012", "from the end to the beginning"),
    ("01232", "2+3 1+23 0+123", "and one letter left"),
)


def cases_in_random_letters(*structures: tuple[str, str, str]):
    """Return cases of the structures in random letters, in the order of the alphabet."""

    def cases(rng: Rng) -> list[Case]:
        letters = sorted(map(str, rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 5, replace=False)))
        letter_table = str.maketrans("01234", "".join(letters))
        return [
            Case(
                (
                    list(word.translate(letter_table)),
                    {
                        tuple(merge.translate(letter_table).split("+")): rank
                        for rank, merge in enumerate(merges.split())
                    },
                ),
                note=note,
            )
            for word, merges, note in structures
        ]

    return cases


BANANA = {("a", "n"): 0, ("b", "an"): 1, ("an", "a"): 2}
BY_HAND = Case((list("banana"), BANANA), note="an, then b + an, then an + a")
UNKNOWN_PAIRS = {("x", "y"): 0, ("y", "z"): 1}
RANK_OF_AA = {("a", "a"): 0}
FEW_PAIRS = (
    Case(([], RANK_OF_AA), use=callers.call_for_new_list, note="no symbol: a new list"),
    Case((["a"], RANK_OF_AA), note="one symbol"),
    Case((list("banana"), {}), use=callers.call_for_new_list, note="no merges: a new list"),
    Case((list("banana"), UNKNOWN_PAIRS), note="no pair of the word is ranked"),
    Case((list("an"), BANANA), use=callers.call_for_new_list, note="one pair: a new list"),
)
RUNS = (
    *(Case((["a"] * n, RANK_OF_AA), note=f"{n} times the same symbol") for n in (2, 3, 4, 5)),
    Case((["a"] * 7, {("a", "a"): 0, ("aa", "aa"): 1}), note="joined symbols are joined again"),
    Case((list("abab"), {("a", "b"): 0, ("ab", "ab"): 1}), note="the same pair twice"),
    Case((list("abcab"), {("a", "b"): 0}), note="the same pair twice, apart"),
)
SPACES = {("Ġ", "t"): 0, ("h", "e"): 1, ("Ġt", "he"): 2, ("Ã", "©"): 3}
TWO_WAYS = {("b", "a"): 0, ("a", "b"): 1, ("a", "ba"): 2}
LONG_SYMBOLS = (
    Case((list("Ġthe"), SPACES), note="a sign that stands for a space"),
    Case((list("ĠcafÃ©"), SPACES), note="a letter of two bytes"),
    Case((["Ġt", "he", "Ġt", "h"], SPACES), note="symbols that are pieces already"),
    Case((["a", "ba", "c", "ab", "a"], TWO_WAYS), note="two pairs, one piece"),
)

# --- decisions and mistakes ----------------------------------------------------------------------


def lowest_rank(candidates):
    """Return the (rank, place, pair) of the lowest rank, the leftmost."""
    return min(candidates)


@composition
def compose_merge_pairs(
    start=list,
    rank=lambda pair, ranks, original: ranks.get(pair),
    choose=lowest_rank,
    join=lambda symbols, pair, place: joined_everywhere(symbols, pair),
    repeat=True,
    finish=lambda symbols: symbols,
):
    """Return ``merge_pairs`` made of decisions; it ends where nothing is joined any more."""

    def merge_pairs(symbols, ranks):
        original, symbols = list(symbols), start(symbols)
        while True:
            pairs = enumerate(pairwise(symbols))
            ranked_pairs = [(rank(pair, ranks, original), place, pair) for place, pair in pairs]
            candidates = [candidate for candidate in ranked_pairs if candidate[0] is not None]
            if not candidates:
                return finish(symbols)
            _, place, pair = choose(candidates)
            before = len(symbols)
            symbols = join(symbols, pair, place)
            if not repeat or len(symbols) == before:
                return finish(symbols)

    return merge_pairs


def join_in_place(symbols, pair, place):
    symbols[:] = joined_everywhere(symbols, pair)
    return symbols


def join_overlapping(symbols, pair, place):
    """Join the pair wherever it stands, also where two such places share a symbol."""
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append("".join(pair))
            i += 1 if tuple(symbols[i + 1 : i + 3]) == pair else 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def join_from_right(symbols, pair, place):
    mirrored = joined_everywhere([s[::-1] for s in symbols[::-1]], (pair[1][::-1], pair[0][::-1]))
    return [s[::-1] for s in mirrored[::-1]]


def join_as(glue):
    """Return the option that joins a pair into ``glue(first, second)``."""

    def join(symbols, pair, place):
        out, i = [], 0
        while i < len(symbols):
            is_pair = tuple(symbols[i : i + 2]) == pair
            out.append(glue(*pair) if is_pair else symbols[i])
            i += 2 if is_pair else 1
        return out

    return {"join": join}


def join_and_drop_last(symbols, pair, place):
    """Join the pair, and lose a last symbol that is in no pair."""
    joined = joined_everywhere(symbols, pair)
    return joined if tuple(symbols[-2:]) == pair else joined[:-1]


def each_merge_once(symbols, ranks):
    """Join each pair once, in the order of ranks, at the first place where it stands."""
    symbols = list(symbols)
    for pair in sorted(ranks, key=ranks.get):
        for i in range(len(symbols) - 1):
            if tuple(symbols[i : i + 2]) == pair:
                symbols[i : i + 2] = ["".join(pair)]
                break
    return symbols


def unranked_pair_first(symbols, ranks):
    """Join by rank, with 0 for a pair that has none."""
    symbols = list(symbols)
    while len(symbols) > 1:
        pair = min(pairwise(symbols), key=lambda pair: ranks.get(pair, 0))
        if pair not in ranks:
            break
        symbols = joined_everywhere(symbols, pair)
    return symbols


def keep_second_symbol(symbols, ranks):
    """Join the pairs and leave the second symbol of each behind."""
    symbols = list(symbols)
    while known := [pair for pair in pairwise(symbols) if pair in ranks]:
        pair = min(known, key=ranks.get)
        starts_pair = [neighbours == pair for neighbours in pairwise(symbols)]
        symbols = [
            s + pair[1] if t else s for s, t in zip(symbols, [*starts_pair, False], strict=True)
        ]
    return symbols


def merge_in_dictionary_order(symbols, ranks):
    for pair in ranks:
        symbols = joined_everywhere(symbols, pair)
    return list(symbols)


def ranks_by_text(ranks):
    return {"".join(pair): rank for pair, rank in ranks.items()}


def join_same_text(symbols, pair, place):
    """Join two symbols that make the same text as the pair."""
    out, i = [], 0
    while i < len(symbols):
        same_text = "".join(symbols[i : i + 2]) == "".join(pair) and i + 1 < len(symbols)
        out.append("".join(pair) if same_text else symbols[i])
        i += 1 + same_text
    return out


# From the left, each time the longest piece that some merge makes.
def longest_piece_first(symbols, ranks):
    text, pieces, out = "".join(symbols), set(map("".join, ranks)), []
    while text:
        n = len(text)
        while n > 1 and text[:n] not in pieces:
            n -= 1
        out.append(text[:n])
        text = text[n:]
    return out


# One walk from the left: what is last in the result is joined with the next where it can.
def merge_in_one_pass(symbols, ranks):
    out = []
    for symbol in symbols:
        out.append(symbol)
        while tuple(out[-2:]) in ranks:
            out[-2:] = ["".join(out[-2:])]
    return out


def replace_in_text(symbols, pair, place):
    return " ".join(symbols).replace(" ".join(pair), "".join(pair)).split(" ")


# Every merge once, in the order of their ranks.
def merge_in_text(symbols, ranks):
    text = " ".join(symbols)
    for pair in sorted(ranks, key=ranks.get):
        text = text.replace(" ".join(pair), "".join(pair))
    return text.split(" ")


def most_frequent_pair(candidates):
    count = Counter(pair for _, _, pair in candidates)
    return max(
        candidates, key=lambda candidate: (count[candidate[2]], -candidate[0], -candidate[1])
    )


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    llama.merge_pairs,
    section="Chapter 18, “Pieces of words”",
    difficulty=2,
    minutes=20,
    criteria=(
        Criterion("the pair of lowest rank first", 3).on(
            lambda rng: [BY_HAND, *cases_in_random_letters(*BY_RANK)(rng)]
        ),
        Criterion("wherever it stands, from left to right", 2).on(lambda rng: list(RUNS)),
        Criterion("again and again, until no pair is ranked", 2).on(
            cases_in_random_letters(*CHAINS)
        ),
        Criterion("long words with many merges", 1).on(long_words),
        Criterion("no pair to join, and symbols of several characters", 1).on(
            lambda rng: [*FEW_PAIRS, *LONG_SYMBOLS, once_more(BY_HAND)]
        ),
        unchanged(),
    ),
    mistakes=(
        *made(
            compose_merge_pairs,
            mistake("""from left to right, not by rank
            You join the first pair that has a rank at all. Of all pairs that stand in the list the
            one of the *lowest* rank comes first: `min(pairs, key=ranks.get)`.""").by(
                choose=lambda candidates: min(candidates, key=lambda candidate: candidate[1])
            ),
            mistake("""from the end of the word
            You join the last pair that has a rank. Of all pairs that stand in the list the one of
            the *lowest* rank comes first, wherever it stands.""").by(
                choose=lambda candidates: max(candidates, key=lambda candidate: candidate[1])
            ),
            mistake("""the highest rank first
            You begin with the pair of the highest rank. Ranks count from the merge that was learned
            first, which is also done first: take the lowest.""").by(choose=max),
            mistake("""the most frequent pair first
            You count pairs in the word. Counting is for learning the merges; here their ranks are
            given, and the lowest comes first.""").by(choose=most_frequent_pair),
            mistake("""the pairs are compared, not their ranks
            You take the pair that comes first in the alphabet, or the longest one.
            `min(pairs)` compares the pairs; `min(pairs, key=ranks.get)` compares their ranks.""")
            .by(choose=lambda candidates: min(candidates, key=lambda candidate: candidate[2]))
            .by(
                choose=lambda candidates: max(
                    candidates, key=lambda candidate: len("".join(candidate[2]))
                )
            ),
            mistake("""one merge and no more
            You join one pair and return. After each merge there are new neighbours: look for pairs
            again until none has a rank.""").by(repeat=False),
            mistake("""what is joined is not joined again
            You look at pairs of the symbols that came in. A joined symbol is one of the list, and
            may be part of the next pair.""").by(
                rank=lambda pair, ranks, original: (
                    ranks.get(pair) if {*pair} <= {*original} else None
                )
            ),
            mistake("""overlapping pairs are both joined
            Where a symbol stands in two pairs, as the middle one of a a a, you use it twice. After
            a pair is joined, go on behind it.""").by(join=join_overlapping),
            mistake("""from right to left
            In a run such as a a a you join the last two. The first two are joined: walk from the
            left.""").by(join=join_from_right),
            mistake("""rank 0 is taken for no rank
            `if rank:` and `rank or …` take 0 for missing, and 0 is the first merge. Ask `pair in
            ranks`, or `is not None`.""").by(
                rank=lambda pair, ranks, original: ranks.get(pair) or None
            ),
            mistake("""pairs without a rank are joined too
            You go on until one symbol is left. A pair that is not in `ranks` is never joined: stop
            where none of the pairs is.""").by(
                rank=lambda pair, ranks, original: ranks.get(pair, float("inf"))
            ),
            mistake("""looked up as one string
                You ask whether two neighbours, written together, make a piece that you know. *ab a*
                and *a ba* make the same one, and only one of them may be ranked: ask for the
                pair.""")
            .by(join=join_same_text)
            .by(
                rank=lambda pair, ranks, original: ranks_by_text(ranks).get("".join(pair)),
                join=join_same_text,
            ),
            mistake("""the list that came in is changed
            You write into the caller's list. Begin with a copy, `list(symbols)`, or build a new
            list.""").by(start=lambda symbols: symbols, join=join_in_place),
            mistake("""joined the wrong way round
            You put the second symbol before the first. The joined symbol is first + second.""").by(
                join_as(lambda a, b: b + a)
            ),
            mistake("""something stands between the two
            You join with a space, or keep the pair as a tuple. The new symbol is one string, first
            + second.""")
            .by(join_as(lambda a, b: f"{a} {b}"))
            .by(join_as(lambda a, b: (a, b))),
            mistake("""the last symbol is lost
            Your loop over pairs ends one symbol early, and a last symbol that is in no pair falls
            off. Add what is left behind the loop.""").by(join=join_and_drop_last),
            mistake("""one string
            You join all symbols into one string in the end. Return the list of symbols.""")
            .by(finish="".join)
            .by(finish=" ".join),
            mistake("""a tuple comes back
                The symbols are right, and they come in a tuple. A new list is asked for:
                `list(symbols)`.""").by(finish=tuple),
            mistake("""the list that came in comes back
                Where nothing is joined you return the list that you were given. Whoever changes
                the one then changes the other: begin with `list(symbols)`.""").by(
                start=lambda symbols: symbols
            ),
            mistake("""each symbol once
            You drop repeated symbols. A word may hold a piece twice.""").by(
                finish=lambda symbols: list(dict.fromkeys(symbols))
            ),
        ),
        mistake("""a pair without a rank is given one
            You take a number such as 0 for the rank of a pair that is not in `ranks`, so that such
            a pair comes first and the search ends. Give it none: `ranks.get(pair, float("inf"))`.
        """).whole(unranked_pair_first),
        mistake("""the second of two joined symbols stays
            You write down the joined symbol and go on with the second of its two parts. It is used
            up: go on behind it, `i += 2`.
        """).whole(keep_second_symbol),
        mistake("""in the order of the dictionary
            You go through `ranks` as its pairs stand there. The rank decides, not the place:
            `sorted(ranks, key=ranks.get)`.
        """).whole(merge_in_dictionary_order),
        mistake("""looked for in a text
            You write the symbols into one text and replace pairs there. *b a* is also found in *ab
            a*, where no symbol is *b*: compare symbols, not what a text contains.""").whole(
            merge_in_text, compose_merge_pairs(join=replace_in_text)
        ),
        mistake("""each merge at one place only
            You go through the merges once and join each at the first place where it stands. It is
            joined everywhere it stands.""").whole(each_merge_once),
        mistake("""the longest piece first
            From the left you take the longest piece that a merge makes. Which pieces come out is
            decided by the ranks: the lowest is joined first.""").whole(longest_piece_first),
        mistake("""in one walk from the left
            You walk along the word once and join what you can on the way. A pair further right may
            have a lower rank: look at all pairs before each merge.""").whole(merge_in_one_pass),
    ),
)
