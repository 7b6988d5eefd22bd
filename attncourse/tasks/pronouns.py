"""Pronoun world: short stories about one character, in a grammar whose entropy is known exactly.

*today mary is small , cute and fluffy . she likes sushi .* The name decides the pronoun; all else
is drawn. Half of the characters are called by their profession, *the doctor*, and are men in a
share of stories that the author chooses: a stereotype of known strength, planted to be found again.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import permutations, product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attncourse.support.arrays import require_count
from attncourse.support.tensors import require_ids

PAD, START, END = 0, 1, 2
OPENINGS = ((), ("today",), ("every", "morning"))
WOMEN = ("mary", "anna", "olga", "rosa", "ines", "vera")
MEN = ("john", "paul", "ivan", "omar", "luis", "karl")
TRAITS = ("small", "cute", "fluffy", "quiet", "brave", "funny", "clever", "tall")
VERBS = ("likes", "cooks", "sells")
FOODS = ("sushi", "pizza", "bread", "salad", "soup", "cake")
STEREOTYPE = {"doctor": 0.9, "nurse": 0.1, "baker": 0.5}  # the share of men


def all_traits() -> list[tuple[str, ...]]:
    """Return one to three different traits in every order."""
    return [traits for count in (1, 2, 3) for traits in permutations(TRAITS, count)]


def traits_as_said(traits: Sequence[str]) -> list[str]:
    """Return traits as words and marks: *small*; *small and cute*; *small, cute and fluffy*."""
    *first, last = traits
    joints = {0: [], 1: [*first, "and"], 2: [first[0], ",", *first[1:], "and"] if first else []}
    return [*joints[len(first)], last]


class PronounWorld:
    """Stories and their ids: a start, a character, one to three traits, a pronoun, a food, an end.

    Every choice is uniform but that of a profession's pronoun: ``men`` is the share of men among
    each. Equal seeds give equal stories. Raises ``ValueError`` for a share outside 0 to 1.
    """

    def __init__(self, seed: int = 0, men: Mapping[str, float] = STEREOTYPE):
        for profession, share in men.items():
            if not 0 <= share <= 1:
                raise ValueError(f"men: expected shares from 0 to 1, got {profession}: {share}")
        if not men:
            raise ValueError("men: expected one profession or more, got none")
        self.men = dict(men)
        self.generator = torch.Generator().manual_seed(require_count("seed", seed, least=0))
        said = {word for opening in OPENINGS for word in opening}
        said |= {
            *WOMEN,
            *MEN,
            *TRAITS,
            *VERBS,
            *FOODS,
            *men,
            *["the", "is", ",", "and", ".", "she", "he"],
        }
        self.words = ("<pad>", "<start>", "<end>", *sorted(said))
        self.places = {word: place for place, word in enumerate(self.words)}
        self.longest = (
            2 + 2 + 2 + 1 + 5 + 5
        )  # ends, opening, the doctor, is, three traits, the rest

    def sample(self, n: int) -> Int[Tensor, "n longest"]:
        """Return the ids of n stories, ``(n, longest)``: start, words, end, and padding behind.

        All are drawn at once. Each choice fills columns of its own, and the columns in which a
        story has no word are closed up.
        """
        n = require_count("n", n)
        character, man = self.characters(n)
        pronoun = torch.where(man, self.places["he"], self.places["she"])
        columns = [
            self.always("<start>", n),
            self.one_of(OPENINGS, n),
            character,
            self.always("is", n),
            self.traits(n),
            self.always(".", n),
            pronoun[:, None],
            self.one_of(VERBS, n),
            self.one_of(FOODS, n),
            self.always(".", n),
            self.always("<end>", n),
        ]
        ids = torch.cat(columns, dim=1)
        order = (ids == PAD).long().argsort(dim=1, stable=True)  # words first, in their order
        return ids.gather(1, order)[:, : self.longest]

    def every(self) -> tuple[Int[Tensor, "n longest"], Float[Tensor, "n"]]:
        """Return the ids of every story, as ``sample`` gives them, and the probability of each.

        There are 388,800 with the professions of ``STEREOTYPE``; one that cannot be is left out.
        """
        people = [(name, float(name in MEN), 1 / 2 / len(WOMEN + MEN)) for name in WOMEN + MEN]
        people += [(f"the {who}", man, 1 / 2 / len(self.men)) for who, man in self.men.items()]
        beginnings, chances = [], []
        for opening, (who, man, called), traits in product(OPENINGS, people, all_traits()):
            listed = traits_as_said(traits)
            chance = called / len(OPENINGS) / 3 / math.perm(len(TRAITS), len(traits))
            for pronoun, share in ("he", man), ("she", 1 - man):
                if share:
                    words = [*opening, *who.split(), "is", *listed, ".", pronoun]
                    beginnings.append(words)
                    chances.append(chance * share / len(VERBS) / len(FOODS))
        ids = torch.full((len(beginnings), len(VERBS) * len(FOODS), self.longest), PAD)
        endings = [(verb, food, ".") for verb, food in product(VERBS, FOODS)]
        ends = torch.tensor([[*self.beginning(words)[1:], END] for words in endings])  # (18, 4)
        for row, words in zip(ids, beginnings, strict=True):
            row[:, : len(words) + 1] = torch.tensor(self.beginning(words))
            row[:, len(words) + 1 : len(words) + 5] = ends
        shares = torch.tensor(chances, dtype=torch.float64).repeat_interleave(len(endings))
        return ids.flatten(0, 1), shares

    def characters(self, n: int) -> tuple[Int[Tensor, "n 2"], Bool[Tensor, "n"]]:
        """Return who each of n stories is about, a name or a profession, and which are men."""
        names, professions = WOMEN + MEN, [("the", profession) for profession in self.men]
        name, profession = self.draw(n, len(names)), self.draw(n, len(professions))
        shares = torch.tensor(list(self.men.values()), dtype=torch.float64)
        coin = torch.rand(n, generator=self.generator, dtype=torch.float64)
        named = self.draw(n, 2).bool()
        character = torch.where(
            named[:, None], self.table(names, width=2)[name], self.table(professions)[profession]
        )
        return character, torch.where(named, name >= len(WOMEN), coin < shares[profession])

    def traits(self, n: int) -> Int[Tensor, "n 5"]:
        """Return one to three different traits, each number and each order equally likely."""
        order = torch.rand(n, len(TRAITS), generator=self.generator).argsort(dim=1)
        words = self.table(TRAITS).flatten()[order[:, :3]]  # (n, 3), different ones
        comma, both, gap = self.places[","], self.places["and"], PAD
        count = self.draw(n, 3)
        joints = torch.tensor([[gap, gap], [gap, both], [comma, both]])[count]  # (n, 2)
        second, third = words[:, 1], words[:, 2]
        first_joint, last_joint = joints.unbind(1)
        several, three = count > 0, count > 1
        return torch.stack(
            [
                words[:, 0],
                first_joint,
                second.where(three, gap),
                last_joint,
                third.where(several, gap),
            ],
            dim=1,
        )

    def one_of(self, choices: Sequence, n: int) -> Int[Tensor, "n width"]:
        """Return the ids of one of the choices for each of n stories, each equally likely."""
        return self.table(choices)[self.draw(n, len(choices))]

    def always(self, word: str, n: int) -> Int[Tensor, "n 1"]:
        """Return one word for each of n stories."""
        return torch.full((n, 1), self.places[word])

    def draw(self, n: int, choices: int) -> Int[Tensor, "n"]:
        """Return n numbers from 0 to choices − 1, each equally likely."""
        return torch.randint(choices, (n,), generator=self.generator)

    def table(self, choices: Sequence, width: int = 1) -> Int[Tensor, "choices width"]:
        """Return the ids of each choice, a word or several, in a row; padding behind."""
        rows = [(choice,) if isinstance(choice, str) else choice for choice in choices]
        width = max(width, *map(len, rows))
        return torch.tensor(
            [[*(self.places[word] for word in row), *[PAD] * (width - len(row))] for row in rows]
        )

    def encode(self, stories: Sequence[Sequence[str]]) -> Int[Tensor, "n longest"]:
        """Return ids of whole stories. Raises ``ValueError`` for a word unknown to the world."""
        ids = torch.full((len(stories), self.longest), PAD)
        for row, words in zip(ids, stories, strict=True):
            if len(words) + 2 > self.longest:
                raise ValueError(f"expected at most {self.longest - 2} words, got {len(words)}")
            row[: len(words) + 2] = torch.tensor([*self.beginning(words), END])
        return ids

    def beginning(self, words: Sequence[str] | str) -> list[int]:
        """Return the ids of a story's first words, after the start, for a model to go on from."""
        words = words.split() if isinstance(words, str) else words
        unknown = [word for word in words if word not in self.places or word.startswith("<")]
        if unknown:
            raise ValueError(f"expected words of pronoun world, got {unknown[0]!r}")
        return [START, *(self.places[word] for word in words)]

    def decode(self, ids: Int[Tensor, "n"]) -> str:
        """Return the words of one story, up to its end."""
        words = [self.words[i] for i in require_ids(ids, len(self.words)).tolist()]
        return " ".join(words[: words.index("<end>")] if "<end>" in words else words)

    def surprise(self, story: str) -> float:
        """Return the surprise of a whole story, ``−log p``, in nats.

        Infinite where it cannot be drawn.

        Its mean over all stories, divided by ``mean_length()``, is ``entropy_rate()``.
        """
        form = re.fullmatch(
            r"(?:(today|every morning) )?(?:the (\w+)|(\w+)) is "
            r"(\w+)(?:(?: , (\w+))? and (\w+))? \. (she|he) (\w+) (\w+) \.",
            story,
        )
        if form is None:
            return math.inf
        _, profession, name, *optional_traits, pronoun, verb, food = form.groups()
        traits = [trait for trait in optional_traits if trait]
        share = self.men.get(profession, float(name in MEN))
        chances = [1 / len(OPENINGS), 1 / 2, 1 / 3, 1 / math.perm(len(TRAITS), len(traits))]
        chances += [(verb in VERBS) / len(VERBS), (food in FOODS) / len(FOODS)]
        chances += [share if pronoun == "he" else 1 - share]
        chances += [1 / len(self.men) if profession else 1 / len(WOMEN + MEN)]
        known = profession in self.men if profession else name in WOMEN + MEN
        if not known or not set(traits) <= set(TRAITS) or len(set(traits)) < len(traits):
            return math.inf
        return -sum(math.log(chance) if chance else -math.inf for chance in chances)

    def entropy_rate(self) -> float:
        """Return the least mean loss of any model, in nats: H(story) / E[tokens after the start].

        A story can have been drawn in one way alone, so its entropy is the sum of its choices'.
        """
        shares = self.men.values()
        coins = [-sum(p * math.log(p) for p in (s, 1 - s) if p) for s in shares]
        named = math.log(len(WOMEN + MEN))
        called = math.log(len(coins)) + sum(coins) / len(coins)
        traits = [math.log(math.perm(len(TRAITS), count)) for count in (1, 2, 3)]
        choices = (len(OPENINGS), 2, 3, len(VERBS), len(FOODS))
        entropy = sum(map(math.log, choices)) + (named + called) / 2 + sum(traits) / 3
        return entropy / self.mean_length()

    def mean_length(self) -> float:
        """Return the mean number of tokens guessed in a story: its words and its end."""
        opening = sum(map(len, OPENINGS)) / len(OPENINGS)
        character, traits = 1.5, (1 + 3 + 5) / 3
        rest = len(["is", ".", "she", "likes", "sushi", ".", "<end>"])
        return opening + character + traits + rest
