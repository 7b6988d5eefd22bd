"""Chapter 18: text as a model's pieces of words, bytes joined by merges that were learned.

A text is cut into words, each with the space before it, and digits by themselves; a word begins as
the symbols of its bytes in UTF-8, and ``merge_pairs`` joins them. Bytes are 256, so a table can
hold them all; a byte that a model's table lacks is left out.
Sources: Sennrich et al. (2016), Neural Machine Translation of Rare Words with Subword Units;
Radford et al. (2019), Language Models are Unsupervised Multitask Learners, section 2.2.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING

import regex
import torch
from jaxtyping import Int
from torch import Tensor

from attncourse.llama import Pair, joined, merge_pairs
from attncourse.support.arrays import require_count
from attncourse.support.tensors import require_ids

if TYPE_CHECKING:
    from attncourse.support.gguf_file import GGUF


def byte_symbols() -> tuple[str, ...]:
    """Return a visible character for each of the 256 bytes: its own where it has one.

    The others, the space among them (*Ġ*), get the characters from 256 on, in order.
    Source: Radford et al. (2019), section 2.2, and its code.
    """
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return tuple(chr(byte if byte in visible else next(others)) for byte in range(256))


def learn_merges(words: Iterable[str], n: int, ties: str = "first") -> dict[Pair, int]:
    """Return the ``n`` pairs that are joined first, each with its rank, learned by counting.

    Every word begins as the symbols of its bytes. Again and again the pair of neighbours that
    occurs most often in all words is joined everywhere; it ends early where no word has two symbols
    left. Of pairs that occur equally often ``ties`` takes the one met ``"first"``, or the one that
    is ``"last"`` in the order of its bytes. words: as they occur in a text, as often as they do.
    Raises ``ValueError`` for one string in place of words, and for other ties. Source: Sennrich et
    al. (2016), section 3.2.
    """
    require_count("n", n, least=0)
    if words is None or isinstance(words, str):
        got = type(words).__name__
        raise ValueError(f"words: expected the words of a text, one by one, got one {got}")
    if ties not in ("first", "last"):
        raise ValueError(f"ties: expected 'first' or 'last', got {ties!r}")
    pairs = PairCounts(words)
    ranks: dict[Pair, int] = {}
    while len(ranks) < n and (candidates := pairs.most_frequent()):
        chosen = pairs.first_met(candidates) if ties == "first" else max(candidates, key=bytes_of)
        ranks[chosen] = len(ranks)
        pairs.join(chosen)
    return ranks


class PairCounts:
    """Counts of each pair of neighbours in the words of a text, kept while pairs are joined.

    A merge changes the words that hold its pair and no others, so only theirs are counted again.
    """

    def __init__(self, words: Iterable[str]):
        self.times = Counter(words)
        self.symbols = {word: symbols_of(word) for word in self.times}
        self.counts: Counter[Pair] = Counter()
        self.holders: defaultdict[Pair, set[str]] = defaultdict(set)  # words, some no longer
        for word in self.times:
            self.count(word, 1)

    def count(self, word: str, sign: int) -> None:
        """Add a word's pairs to the counts, or take them away."""
        for pair in pairwise(self.symbols[word]):
            self.counts[pair] += sign * self.times[word]
            self.holders[pair].add(word)

    def most_frequent(self) -> set[Pair]:
        """Return the pairs that occur most often, none where no pair is left."""
        most = max(self.counts.values(), default=0)
        return {pair for pair, times in self.counts.items() if times == most > 0}

    def first_met(self, candidates: set[Pair]) -> Pair:
        """Return the one of these pairs that stands first in the words, as they came."""
        if len(candidates) == 1:
            return next(iter(candidates))
        every = (pair for symbols in self.symbols.values() for pair in pairwise(symbols))
        return next(pair for pair in every if pair in candidates)

    def join(self, pair: Pair) -> None:
        """Join a pair wherever it stands."""
        for word in self.holders.pop(pair):
            self.count(word, -1)
            self.symbols[word] = joined(self.symbols[word], pair)
            self.count(word, 1)


def bytes_of(pair: Pair) -> tuple[bytes, ...]:
    """Return the bytes of both symbols of a pair."""
    return tuple(bytes(BYTES[sign] for sign in symbol) for symbol in pair)


def symbols_of(word: str) -> list[str]:
    """Return a symbol for each byte of a word in UTF-8. Raises ``ValueError`` for what has none."""
    if not isinstance(word, str):
        raise ValueError(f"text: expected a str, got {type(word).__name__}; decode bytes first")
    try:
        return [SYMBOLS[byte] for byte in word.encode("utf-8")]
    except UnicodeEncodeError as error:
        what = f"{word[error.start]!r} at {error.start}"
        raise ValueError(f"text: expected characters of Unicode, got {what}") from None


@dataclass(frozen=True)
class BytePairs:
    """A model's pieces of words: ``tokens[i]``, in symbols of bytes, is the piece with id i.

    ``ranks``: of the pairs that are joined. ``special``: ids of tokens that stand for themselves
    wherever they are written, *<|im_end|>* say. ``digits``: whether each is a word of its own.
    ``template``: how a conversation is written down, in Jinja. ``end``: the id that ends an answer.
    """

    tokens: tuple[str, ...]
    ranks: Mapping[Pair, int]
    special: frozenset[int] = frozenset()
    digits: bool = True
    template: str = ""
    end: int | None = None
    _known: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each piece."""
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def written(self) -> dict[str, int]:
        """The ids of the special tokens, the longest first."""
        special_tokens = sorted((self.tokens[i] for i in self.special), key=len, reverse=True)
        return {token: self.ids[token] for token in special_tokens}

    def encode(self, text: str) -> Int[Tensor, "n"]:
        """Return the ids of the text's n pieces, ``(n,)``.

        A byte that no piece has is left out, as ``tokenizers`` does: SmolLM2 has none for six
        control characters, and for bytes that no character in use begins with. Raises
        ``ValueError`` for what is no text of Unicode characters.
        """
        symbols_of(text)  # refuses what is none
        ids: list[int] = []
        for part in parted(text, self.written):
            if part in self.written:
                ids.append(self.written[part])
            else:
                for word in words_of(part, self.digits):
                    ids += self.of_word(word)
        return torch.tensor(ids, dtype=torch.int64)

    def of_word(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word's pieces; most words come again."""
        if word not in self._known:
            symbols = [symbol for symbol in symbols_of(word) if symbol in self.ids]
            pieces = merge_pairs(symbols, self.ranks)
            self._known[word] = tuple(self.ids[piece] for piece in pieces)
        return self._known[word]

    def decode(self, ids: Int[Tensor, "n"] | Iterable[int]) -> str:
        """Return the text that these ids stand for; bytes that are no character become *�*.

        Raises ``ValueError`` for an id that no piece has.
        """
        ids = torch.as_tensor(ids if isinstance(ids, Tensor) else list(ids))
        if ids.numel() == 0:
            return ""
        require_ids(ids, len(self.tokens))
        return b"".join(map(self.bytes_of, ids.flatten().tolist())).decode("utf-8", "replace")

    def bytes_of(self, number: int) -> bytes:
        """Return the bytes that an id stands for, which need not be whole characters."""
        token = self.tokens[number]
        if number in self.special:
            return token.encode()
        return bytes(BYTES[symbol] for symbol in token)

    def pieces(self, text: str) -> list[str]:
        """Return the text's pieces as they look, each decoded by itself."""
        return [self.decode([number]) for number in self.encode(text).tolist()]

    def chat(self, *turns: str, system: str | None = None) -> Int[Tensor, "n"]:
        """Return the ids of a conversation up to where the model answers.

        turns: a question, or question and answer by turns. system: what it is told before, its own
        words unless given. Raises ``ValueError`` where the model has no template.
        """
        if not self.template:
            raise ValueError("chat: expected a model that has a template, this one has none")
        if len(turns) % 2 == 0:
            raise ValueError(f"turns: expected a question at the end, got {len(turns)} turns")
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        roles = (("user", "assistant")[i % 2] for i in range(len(turns)))
        messages = [{"role": r, "content": t} for r, t in zip(roles, turns, strict=True)]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        page = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        template = page.from_string(self.template)
        return self.encode(template.render(messages=messages, add_generation_prompt=True))

    @classmethod
    def from_gguf(cls, file: "str | PathLike | GGUF") -> "BytePairs":
        """Return the pieces that a GGUF file's model reads and writes.

        Raises ``ValueError`` for a file that is not whole, and for pieces that are made otherwise.
        """
        from attncourse.support.gguf_file import gguf_pieces, read_gguf

        return cls(**gguf_pieces(read_gguf(file)))


def parted(text: str, special: Iterable[str]) -> list[str]:
    """Return the text, cut before and after every special token in it."""
    special = "|".join(map(regex.escape, special))
    return regex.split(f"({special})", text) if special else [text]


def words_of(text: str, digits: bool) -> list[str]:
    """Return the text cut into words, each with one space before it; nothing is lost.

    digits: whether each digit is a word by itself.
    """
    parts = DIGIT.split(text) if digits else [text]
    return [word for part in parts for word in WORD.findall(part)]


SYMBOLS = byte_symbols()
BYTES = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}
DIGIT = regex.compile(r"(\p{N})")
# Of GPT-2: an English ending, letters, digits, other marks, spaces but for the last, spaces.
WORD = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
