"""Random arguments for any function or class of the package, by its annotations."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
import torch
from torch import Tensor, nn

from attncourse.gpt import GPT, GPTConfig
from attncourse.scoring import AdditiveScore
from attncourse.support.shapes import Count, Positive

# What annotations do not tell, in a line by the argument's name.
BY_NAME: dict[str, Callable[[Draw], Any]] = {
    "adam": lambda draw: SimpleNamespace(zero_grad=lambda: None, step=lambda share: None),
    "arrays": lambda draw: draw.rng.normal(size=7),
    "axis": lambda draw: draw.one_of(-1, 0),
    "atol": lambda draw: 1e-8,
    "block": lambda draw: draw.one_of(1, 3, 128),
    "blocks": lambda draw: torch.randn(*draw.batch, 5, 17).split(draw.one_of(1, 4, 17), -1),
    "branch": lambda draw: draw.one_of(torch.tanh, torch.sin),
    "dropout": lambda draw: 0.0,
    "config": lambda draw: configuration(draw),
    "counts": lambda draw: torch.randint(1, 9, (5,)),
    "clean": lambda draw: torch.randint(3, (*draw.batch, draw.sizes["n"])),
    "contexts": lambda draw: [torch.randint(11, (n,)) for n in (3, 7, 1)],
    "edges": lambda draw: [(0, 0)],
    "encoded": lambda draw: encoded(draw.sizes),
    "f": lambda draw: draw.one_of(
        lambda X: X * X + X.sum(-2)[..., None, :], lambda X: X.cumsum(-2)
    ),
    "he": lambda draw: 2,
    # An image of 6 patches, for the class token's weights on them and itself.
    "height": lambda draw: draw.sizes.setdefault("height", draw.one_of(1, 2, 3, 6)),
    "head": lambda draw: draw.one_of(0, 2),
    "how": lambda draw: "zero",
    "k": lambda draw: draw.one_of(-2.5, 0, 3),
    "labels": lambda draw: draw.rng.integers(3, size=9),
    "layer": lambda draw: draw.one_of(0, 1),
    "level": lambda draw: draw.one_of(0.5, 0.9),
    "losses": lambda draw: torch.rand(5),
    "lengths": lambda draw: torch.randint(0, draw.sizes["max_length"] + 1, draw.batch),
    "model": lambda draw: small_gpt(),
    "n_new": lambda draw: draw.one_of(0, 1, 9),
    "n_samples": lambda draw: 50,
    "norm": lambda draw: draw.one_of(nn.Identity(), nn.Hardtanh()),
    "p": lambda draw: draw.shares(),
    "pad": lambda draw: draw.one_of(0, 2),
    "pair": lambda draw: ("a", "n"),
    "predictions": lambda draw: draw.rng.integers(3, size=9),
    "ranks": lambda draw: {("a", "n"): 0, ("b", "an"): 1, ("an", "a"): 2},
    "residual": lambda draw: draw.one_of(0.0, 0.3, 1.0),
    "score": lambda draw: AdditiveScore(draw.sizes["d_hidden"], 2 * draw.sizes["d_hidden"], 5),
    "sequence": lambda draw: draw.one_of("CASSF", "cassirssYEQ", "CASS*F"),
    "sequences": lambda draw: sequences(draw),
    "she": lambda draw: 10,
    "statistic": lambda draw: draw.one_of(
        lambda *arrays: float(sum(map(np.mean, arrays))), lambda *arrays: float(arrays[0].max())
    ),
    "symbols": lambda draw: list(draw.one_of("banana", "anna", "b", "")),
    "test_fraction": lambda draw: draw.one_of(0.2, 0.5),
    "tokens": lambda draw: ("<unk>", *(f"t{i}" for i in range(1, draw.sizes["n"]))),
    "weights": lambda draw: draw.shares(),
    "without": lambda draw: draw.one_of("", "norm", "residual"),
    "width": lambda draw: (
        6 // draw.sizes["height"] if "height" in draw.sizes else draw.one_of(1, 3, 4, 9)
    ),
}


def configuration(draw: Draw) -> GPTConfig | dict:
    """Sizes of a language model, or what each of its layers keeps."""
    if draw.named != "cache_bytes_of":
        return GPTConfig(11, 9, d_model=12, n_heads=3)
    layers = draw.one_of(["full", "window"], ["latent"], ["state", "full", "state"])
    sizes = {"n_kv_heads": 2, "d_head": 5, "window": draw.one_of(1, 7), "d_latent": 11}
    return {"layers": layers, **sizes, "d_turned": 4, "d_state": 13}


def encoded(sizes: DrawnSizes) -> tuple[Tensor, Tensor, Tensor]:
    """What the translator's encoder hands to its decoder."""
    b, n, d = sizes["b"], sizes["n"], 2 * sizes["d_hidden"]
    return (
        torch.randn(b, n, d),
        torch.randn(b, 1, d),
        torch.arange(n) < torch.tensor([[[n]], [[2]]]),
    )


def sequences(draw: Draw) -> list:
    """Ids of different lengths where a batch is made of them, receptors elsewhere."""
    if draw.named == "pad_left":
        return [draw.rng.integers(0, 3, n).tolist() for n in (5, 1, 7)]
    return ["".join(draw.rng.choice(list("ACD"), 9)) for _ in range(13)]


def small_gpt() -> GPT:
    """A language model with weights of order one, the same ones for ever."""
    torch.manual_seed(5)
    return randomised(GPT(GPTConfig(11, 9, d_model=12, n_heads=3)))


class DrawnSizes(dict):
    """How long an axis is; those that nobody speaks of have a prime length of their own."""

    def __init__(self):
        super().__init__(b=2, d=12, d_model=12, h=6, m=5, n=7, n_heads=6, n_kv_heads=2, d_out=24)
        self |= {"n_queries": 3, "q": 3, "k": 3, "k_and_1": 4}
        # Images of 6 patches, which with the class token are 7 tokens.
        self |= {"c": 3, "H": 6, "W": 4, "patch": 2, "window": 2, "cpp": 12, "tokens": 7}
        self |= {"side": 6, "image_size": 6, "n_channels": 3, "n_layers": 2}

    def __missing__(self, axis: str) -> int:
        self[axis] = int(axis) if axis.isdigit() else PRIMES[zlib.crc32(axis.encode()) % 8]
        return self[axis]


PRIMES = (11, 13, 17, 19, 23, 29, 31, 37)


class Draw:
    """Random arguments, the same for the same seed."""

    def __init__(self, seed: int):
        self.rng, self.sizes = np.random.default_rng(seed), DrawnSizes()
        self.batch = self.one_of((), (2,), (3, 2))
        self.numbers = self.one_of("any", "positive", "shares")
        torch.manual_seed(seed)

    def one_of(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def arguments(self, function: Callable, method: bool = False) -> tuple[list, dict]:
        """Arguments in order and by name; an optional one is given or not."""
        positional, named, self.named = [], {}, function.__name__
        for parameter in list(parameters(function))[method:]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional, named = (
                    [*named.values(), *(self.value(parameter) for _ in range(3))],
                    {},
                )
            elif parameter.default is parameter.empty or (
                is_drawable(parameter) and self.one_of(True, parameter.name == "rng")
            ):
                named[parameter.name] = self.value(parameter)
        return positional, named

    def instance(self, kind: type, like: type | None = None) -> Any:
        _, named = self.arguments((like or kind).__init__, method=True)
        torch.manual_seed(0)
        return kind(**named)

    def value(self, parameter: inspect.Parameter) -> Any:
        if parameter.name in BY_NAME:
            return BY_NAME[parameter.name](self)
        kind = self.one_of(*kinds(parameter))
        if hasattr(kind, "dim_str"):
            return self.array(kind)
        if kind is Count:
            return self.sizes[parameter.name]
        if inspect.isclass(kind) and issubclass(kind, nn.Module):
            return randomised(self.instance(kind))
        return PLAIN[kind](self)

    def array(self, kind: Any) -> np.ndarray | Tensor:
        shape: list[int] = []
        for axis in kind.dim_str.replace("... n", "n").replace("...", "m n").split():
            if axis == "*batch":
                shape += self.batch
            elif axis == "*#batch":
                shape += self.one_of(self.batch, self.batch[1:], [1] * len(self.batch))
            elif axis.startswith("#"):
                shape.append(self.one_of(self.sizes[axis[1:]], 1))
            else:
                shape.append(self.sizes[axis])
        if kind.__name__.startswith("Float"):
            made = self.rng.normal(size=shape).astype(np.float32)
            made = made if self.numbers == "any" else np.abs(made)
            made = made / made.sum(-1, keepdims=True) if self.numbers == "shares" else made
        elif kind.__name__.startswith("Bool"):
            made = self.rng.random(shape) < 0.6
        else:
            made = self.rng.integers(0, 3, shape)
        return torch.tensor(made) if kind.array_type is Tensor else made

    def shares(self) -> Tensor:
        """Rows that sum to 1, with zeros."""
        scores = torch.tensor(self.rng.normal(size=(*self.batch, 5, 7)))
        return scores.masked_fill(scores < scores.mean(), -torch.inf).softmax(-1).nan_to_num(0)


PLAIN: dict[Any, Callable[[Draw], Any]] = {
    Positive: lambda draw: float(draw.rng.uniform(0.5, 2)),
    bool: lambda draw: True,
    float: lambda draw: float(draw.rng.normal()),
    int: lambda draw: 2,
    str: lambda draw: draw.one_of("My cat is small, cute, and fluffy.", "t1 T2, t1?", ""),
    np.random.Generator: lambda draw: np.random.default_rng(5),
    torch.Generator: lambda draw: torch.Generator().manual_seed(5),
}


def parameters(function: Callable) -> Iterator[inspect.Parameter]:
    yield from inspect.signature(function, eval_str=True).parameters.values()


def kinds(parameter: inspect.Parameter) -> list:
    """What the annotation allows and `Draw` can make."""
    union = get_origin(parameter.annotation) in (Union, UnionType)
    every = get_args(parameter.annotation) if union else (parameter.annotation,)
    modules = (k for k in every if inspect.isclass(k) and issubclass(k, nn.Module))
    known = {*PLAIN, Count, *modules}
    return [kind for kind in every if hasattr(kind, "dim_str") or kind in known]


def is_drawable(parameter: inspect.Parameter) -> bool:
    return parameter.name in BY_NAME or bool(kinds(parameter))


def can_be_drawn(parameter: inspect.Parameter) -> bool:
    return is_drawable(parameter) or parameter.default is not parameter.empty


def randomised(module: nn.Module) -> nn.Module:
    """The module with parameters of order one, biases too."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module
