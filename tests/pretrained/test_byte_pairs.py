"""Chapter 18: pieces of words, against ``tokenizers`` with the same merges."""

from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attncourse.llama import joined, merge_pairs
from attncourse.pretrained.byte_pairs import (
    SYMBOLS,
    BytePairs,
    byte_symbols,
    learn_merges,
    symbols_of,
)
from helpers.small_byte_pairs import PARAGRAPH, TEMPLATE, small, texts, theirs


@pytest.mark.parametrize("digits", [True, False])
def test_ids_are_those_of_tokenizers_and_come_back_as_the_text(digits):
    ours = small(digits=digits)
    right = theirs(ours)
    for text in texts(10_000, seed=digits):
        ids = ours.encode(text)
        assert ids.tolist() == right.encode(text, add_special_tokens=False).ids, ascii(text)
        assert ours.decode(ids) == text


def test_pieces_of_a_word_are_seen():
    words = small()
    assert words.pieces("Bettina's otters") == ["Bettina", "'s", " otters"]
    assert words.pieces(" 2048") == [" ", "2", "0", "4", "8"]
    assert words.encode("").shape == (0,)
    assert words.encode("").dtype == torch.int64
    assert words.decode(words.encode("")) == ""


def test_bytes_without_a_piece_are_left_out_as_tokenizers_does():
    few = BytePairs((*(s for s in byte_symbols() if s not in "xĄ"), "!!"), {("!", "!"): 0})
    for text in ("!x!", "!\x04!", "x", "axb"):
        assert few.encode(text).tolist() == theirs(few).encode(text).ids
    assert few.decode(few.encode("!\x04!")) == "!!"


def test_half_a_character_is_shown_as_one_that_is_missing():
    words = BytePairs(byte_symbols(), {})
    ids = words.encode("né")
    assert words.decode(ids[:2]) == "n\ufffd"
    assert b"".join(words.bytes_of(i) for i in ids.tolist()) == "né".encode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"caf\xe9", "expected a str, got bytes; decode bytes first"),
        (
            b"caf\xe9".decode("utf-8", "surrogateescape"),
            r"characters of Unicode, got '\\udce9' at 3",
        ),
        (7, "expected a str, got int"),
    ],
)
def test_what_is_no_text_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        small(0).encode(text)


def test_ids_that_no_piece_has_are_refused():
    with pytest.raises(ValueError, match=r"ids from 0 to 258, got 259 at index \(1,\)"):
        small(0).decode([3, 259])


# --- learning -------------------------------------------------------------------------------------


def test_bytes_have_256_visible_symbols():
    symbols = byte_symbols()
    assert len(set(symbols)) == 256
    assert all(symbol.isprintable() and not symbol.isspace() for symbol in symbols)
    assert "".join(symbols[byte] for byte in b" rubs!") == "Ġrubs!"
    tokenizers = pytest.importorskip("tokenizers")
    assert set(symbols) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())


def test_merges_of_the_papers_example():
    """Sennrich et al. (2016), section 3.2, without its mark for the end of a word."""
    words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    first = [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w"), ("n", "e"), ("ne", "w")]
    assert list(learn_merges(words, 6)) == first
    assert list(learn_merges(words, 6).values()) == list(range(6))


def test_every_merge_is_of_the_commonest_pair():
    words = PARAGRAPH.split()
    ranks = learn_merges(words, 120)
    parts = [symbols_of(word) for word in words]
    for pair in ranks:
        counts = Counter(p for symbols in parts for p in pairwise(symbols))
        assert counts[pair] == max(counts.values())
        parts = [joined(symbols, pair) for symbols in parts]
    assert parts == [merge_pairs(symbols_of(word), ranks) for word in words]


def test_learning_ends_where_nothing_is_left_to_join():
    assert learn_merges(["ab", "ab", "c"], 9) == {("a", "b"): 0}
    with pytest.raises(ValueError, match="expected 'first' or 'last', got 'random'"):
        learn_merges(["ab"], 1, ties="random")
    assert learn_merges([], 3) == {}
    with pytest.raises(ValueError, match="words of a text, one by one, got one str"):
        learn_merges("a text", 3)
    with pytest.raises(ValueError, match="n: expected a whole number of at least 0"):
        learn_merges(["ab"], -1)


def test_an_overlapping_pair_is_joined_from_the_left():
    assert joined(list("aaaaa"), ("a", "a")) == ["aa", "aa", "a"]
    assert joined(list("xaab"), ("a", "b")) == ["x", "a", "ab"]
    assert joined(["a"], ("a", "")) == ["a"]


# --- conversations --------------------------------------------------------------------------------


def test_a_conversation_is_written_down_by_the_template():
    words = BytePairs(small(0).tokens, {}, frozenset(range(3)), template=TEMPLATE)
    ids = words.chat("Who?", "Me.", "Why?", system="Be brief.")
    assert words.decode(ids) == (
        "<|start|>system: Be brief.<|end|><|start|>user: Who?<|end|><|start|>assistant: Me.<|end|>"
        "<|start|>user: Why?<|end|><|start|>assistant:"
    )
    assert ids.tolist().count(2) == 5  # special tokens are one id each
    with pytest.raises(ValueError, match="a question at the end, got 2 turns"):
        words.chat("Who?", "Me.")
    with pytest.raises(ValueError, match="expected a model that has a template"):
        small(0).chat("Who?")


def test_symbols_are_kept_in_one_place():
    assert byte_symbols() == SYMBOLS


def merges_counted_anew(words: list[str], n: int, last: bool) -> dict:
    """The definition: all pairs are counted again after each merge."""
    often = Counter(words)
    symbols = {word: symbols_of(word) for word in often}
    ranks = {}
    while len(ranks) < n:
        counts = Counter()
        for word, times in often.items():
            for pair in pairwise(symbols[word]):
                counts[pair] += times
        if not counts:
            break
        most = max(counts.values())
        tied = [pair for pair, times in counts.items() if times == most]
        ids = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}
        by_bytes = [tuple([ids[c] for c in symbol] for symbol in pair) for pair in tied]
        chosen = tied[by_bytes.index(max(by_bytes))] if last else tied[0]
        ranks[chosen] = len(ranks)
        symbols = {word: joined(parts, chosen) for word, parts in symbols.items()}
    return ranks


@given(st.lists(st.text(" abß", max_size=9), max_size=12), st.integers(0, 12), st.booleans())
def test_counts_that_are_kept_are_those_that_are_made_anew(words, n, last):
    expected = merges_counted_anew(words, n, last)
    assert list(learn_merges(words, n, ties="last" if last else "first")) == list(expected)


def test_of_equal_pairs_the_last_is_the_last_in_bytes():
    words = [" t", "ab"]  # a space is a byte below letters, and its symbol comes after them
    assert next(iter(learn_merges(words, 1))) == ("Ġ", "t")
    assert next(iter(learn_merges(words, 1, ties="last"))) == ("a", "b")
