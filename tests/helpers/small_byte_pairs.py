"""Byte pairs small enough to see through, and the same by the tokenizers library."""

import random
import sys
import unicodedata

import pytest

from attncourse.pretrained.byte_pairs import (
    BytePairs,
    byte_symbols,
    learn_merges,
)

PARAGRAPH = (
    """Bettina's 7 otters weren't asleep. They'd 2,048 pebbles — some round, some flat — and
    sorted them all day: größere links, küçükler sağda, छोटे नीचे, 圓的在上。 "We'll never be done!"
    they said;   Bettina'll see. 🦦🦦 def sort(x):\n\treturn sorted(x)  # x₂ ≤ ½ Ⅷ ٣٤\r\n\n"""
    * 2
)


SPECIAL = ("<|end|>", "<|end|>er", "<|start|>")


def small(n: int = 300, digits: bool = True) -> BytePairs:
    """Pieces learned from the paragraph."""
    from attncourse.pretrained.byte_pairs import words_of

    ranks = learn_merges(words_of(PARAGRAPH, digits), n)
    tokens = (*SPECIAL, *byte_symbols(), *("".join(pair) for pair in ranks))
    return BytePairs(tokens, ranks, frozenset(range(3)), digits)


def theirs(ours: BytePairs):
    """The same pieces in ``tokenizers``."""
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {token: number for number, token in enumerate(ours.tokens)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, list(ours.ranks)))
    steps = [tokenizers.pre_tokenizers.Digits(individual_digits=True)] if ours.digits else []
    steps.append(tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([ours.tokens[number] for number in sorted(ours.special)])
    return made


# Characters of every script and plane. What has no meaning yet is a letter for one library already.
NONE_YET = ("Cn", "Cs")
EVERY = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) not in NONE_YET]
COMMON = "aeinorst  '.,-\n\t019éßığकि的🦦\u00a0\u2028\u200d½²"


def texts(n: int, seed: int, special=SPECIAL):
    """Random texts: any characters, common ones, words of a paragraph, special tokens."""
    draw = random.Random(seed)
    sources = (
        lambda: draw.choice(EVERY),
        lambda: draw.choice(COMMON),
        lambda: draw.choice(PARAGRAPH.split(" ")),
        lambda: draw.choice(["'s", "'LL", "'ll", "  ", "\r\n", "\0", *special]),
    )
    for _ in range(n):
        weights = [draw.random() ** 3 for _ in sources]
        parts = draw.choices(sources, weights, k=draw.randrange(25))
        yield "".join(part() for part in parts)


TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}: {{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant:{% endif %}"
)
