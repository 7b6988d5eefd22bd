"""A random Llama in the format of the real one: blocks of 4 and 8 bits, and small."""

from pathlib import Path

import pytest
import torch

from attncourse.llama import Llama
from attncourse.support.gguf_file import names_and_shapes
from helpers.random_llama import llama
from helpers.small_byte_pairs import TEMPLATE, small

gguf = pytest.importorskip("gguf")

SIZES = {"d_model": 64, "n_heads": 4, "n_kv_heads": 2, "d_ff": 96, "n_layers": 3, "base": 777.0}
KINDS = gguf.GGMLQuantizationType

WORDS = small(60)
N_VOCAB = len(WORDS.tokens)


def a_llama(**changed) -> Llama:
    return llama(**{"n_vocab": N_VOCAB, "d_ff": 32} | changed)


def written(path: Path, model: Llama, tensors=None, kind="llama", **changed) -> Path:
    """A GGUF file of this model. ``changed``: fields by name, None for one that is left out."""
    config, writer = model.config, gguf.GGUFWriter(path, kind)
    fields = {
        "embedding_length": config.d_model, "attention.head_count": config.n_heads,
        "attention.head_count_kv": config.n_kv_heads, "block_count": config.n_layers,
        "feed_forward_length": config.d_ff, "context_length": config.max_length,
        "rope.freq_base": config.base, "attention.layer_norm_rms_epsilon": config.eps,
    } | changed  # fmt: skip
    for name, value in fields.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        if value is not None:
            add[type(value)](f"llama.{name}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(list(WORDS.tokens))
    writer.add_token_types([3 if i in WORDS.special else 1 for i in range(N_VOCAB)])
    writer.add_token_merges([" ".join(pair) for pair in WORDS.ranks])
    writer.add_chat_template(TEMPLATE)
    writer.add_eos_token_id(0)
    state = model.state_dict()
    sizes = {name: getattr(config, name) for name in vars(config)}
    for name, ours, _ in names_and_shapes(sizes):
        tensor = (tensors or {}).get(name, state[ours])
        if isinstance(tensor, torch.Tensor):
            writer.add_tensor(name, tensor.numpy())
        elif tensor is not None:
            writer.add_tensor(name, tensor[0], raw_dtype=tensor[1])
    for name in (tensors or {}).keys() - {name for name, *_ in names_and_shapes(sizes)}:
        writer.add_tensor(name, tensors[name].numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


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
