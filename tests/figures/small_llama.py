"""A random Llama in the format of the real one: blocks of 4 and 8 bits, and small."""

from pathlib import Path

import gguf
from test_gguf_file import WORDS, a_llama, written

from attncourse.llama import Llama

SIZES = {"d_model": 64, "n_heads": 4, "n_kv_heads": 2, "d_ff": 96, "n_layers": 3, "base": 777.0}
KINDS = gguf.GGMLQuantizationType


def small_file(path: Path, kinds=None, tied=True, **changed) -> Path:
    """The file. ``kinds``: how a tensor is stored that is not stored as usual, by its name."""
    model = a_llama(**SIZES, tied=tied)
    tensors = {}
    for name, weight in model.state_dict().items():
        if weight.ndim == 2 and not (tied and name == "out.weight"):
            kind = KINDS.Q8_0 if name in ("tokens.weight", "out.weight") else KINDS.Q4_1
            more = 0.5 if "W_q" in name or "W_k" in name else 1  # heads that look at several keys
            kind = (kinds or {}).get(theirs(name), kind)
            tensors[theirs(name)] = (gguf.quantize(more * weight.detach().numpy(), kind), kind)
    return written(path, model, tensors, **changed)


def theirs(name: str) -> str:
    """What GGUF calls a parameter of a ``Llama``."""
    from attncourse.support.gguf_file import names_and_shapes

    sizes = {"n_vocab": 1, "d_ff": 1, "tied": False} | SIZES
    return next(there for there, ours, _ in names_and_shapes(sizes) if ours == name)


def small_model(path: Path, **changed) -> Llama:
    """The same file, read by the package."""
    return Llama.from_gguf(small_file(path, **changed))


__all__ = ["KINDS", "SIZES", "WORDS", "small_file", "small_model"]
