"""GGUF files, which hold a model's sizes, words and weights, under this course's names."""

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

ANOTHER_FILE_HINT = "take a file of a Llama in GGUF, say the one that attncourse model fetches"
CONTROL_TOKEN_TYPE = 3  # the kind of a token that stands for no text
SINGLE_DIGITS = {"smollm": True, "gpt-2": False}  # how words are cut, by its name in the file


class GGUF(NamedTuple):
    """A file that has been read: its fields by name, and its tensors, still as they are stored."""

    path: str
    fields: Mapping[str, Any]
    tensors: Mapping[str, Any]

    def field(self, name: str, *unless: Any) -> Any:
        """Return the content of a field.

        Raises ``ValueError`` where it is missing and no default is given, and for one of no text.
        """
        if name not in self.fields:
            if unless:
                return unless[0]
            raise ValueError(f"{self.path}: the field {name} is missing; {ANOTHER_FILE_HINT}")
        try:
            return self.fields[name].contents()
        except (ValueError, IndexError) as error:
            raise ValueError(f"{self.path}: the field {name} is no text ({error})") from None


def read_gguf(file: "str | PathLike | GGUF") -> GGUF:
    """Return a GGUF file; one that has been read already is returned as it is.

    Raises ``ValueError`` for a file that is missing, cut off, or none of GGUF, and ``ImportError``
    without the library ``gguf``.
    """
    if isinstance(file, GGUF):
        return file
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
    except FileNotFoundError:
        raise ValueError(f"{file}: there is no such file") from None
    except OSError as error:
        raise ValueError(f"{file}: cannot be read ({error})") from None
    except Exception as error:  # whatever comes of numbers that are none
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{file}: is cut off or no GGUF file ({said}); {ANOTHER_FILE_HINT}"
        ) from error
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    return GGUF(str(file), reader.fields, tensors)


def gguf_sizes(file: GGUF) -> dict[str, Any]:
    """Return the arguments of a ``LlamaConfig``.

    Raises ``ValueError`` for a model unlike a ``Llama``.
    """
    kind = file.field("general.architecture")
    if kind != "llama":
        raise ValueError(
            f"{file.path}: expected the architecture llama, got {kind}; {ANOTHER_FILE_HINT}"
        )

    def field(name: str, *unless: Any) -> Any:
        return file.field(f"llama.{name}", *unless)

    d_model, n_heads = field("embedding_length"), field("attention.head_count")
    n_kv_heads = field("attention.head_count_kv", n_heads)
    for name in ("embedding_length", "attention.head_count", "block_count", "context_length"):
        if not isinstance(number := field(name), int) or number < 1:
            raise ValueError(f"{file.path}: expected a count in llama.{name}, got {number!r}")
    d_head = d_model // n_heads
    for name, expected in (
        ("attention.key_length", d_head),
        ("attention.value_length", d_head),
        ("rope.dimension_count", d_head),
        ("rope.scaling.type", "none"),
        ("expert_count", 0),
    ):
        if (got := field(name, expected)) != expected:
            raise ValueError(f"{file.path}: expected llama.{name} = {expected}, got {got}")
    return {
        "n_vocab": field("vocab_size", len(file.field("tokenizer.ggml.tokens", ()))),
        "max_length": field("context_length"),
        "d_model": d_model,
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "n_layers": field("block_count"),
        "d_ff": field("feed_forward_length"),
        "base": field("rope.freq_base", 10000.0),
        # Stored in float32: 9.999999747e-06 is 1e-5.
        "eps": float(f"{field('attention.layer_norm_rms_epsilon'):.6g}"),
        "tied": "output.weight" not in file.tensors,
    }


def gguf_pieces(file: GGUF) -> dict[str, Any]:
    """Return the arguments of ``BytePairs``. Raises ``ValueError`` for other pieces."""
    for name, known in (("model", ("gpt2",)), ("pre", tuple(SINGLE_DIGITS))):
        if (got := file.field(f"tokenizer.ggml.{name}")) not in known:
            want = " or ".join(known)
            raise ValueError(f"{file.path}: expected tokenizer.ggml.{name} = {want}, got {got}")
    merges = file.field("tokenizer.ggml.merges")
    kinds = file.field("tokenizer.ggml.token_type", ())
    return {
        "tokens": tuple(file.field("tokenizer.ggml.tokens")),
        "ranks": {tuple(pair.split(" ")): rank for rank, pair in enumerate(merges)},
        "special": frozenset(
            number for number, kind in enumerate(kinds) if kind == CONTROL_TOKEN_TYPE
        ),
        "digits": SINGLE_DIGITS[file.field("tokenizer.ggml.pre")],
        "template": file.field("tokenizer.chat_template", ""),
        "end": file.field("tokenizer.ggml.eos_token_id", None),
    }


def names_and_shapes(sizes: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield each tensor's name in a file, its name in a ``Llama``, and its shape."""
    d, d_ff, n_vocab = sizes["d_model"], sizes["d_ff"], sizes["n_vocab"]
    d_kv = sizes["n_kv_heads"] * (d // sizes["n_heads"])
    yield "token_embd.weight", "tokens.weight", (n_vocab, d)
    yield "output_norm.weight", "norm.gain", (d,)
    if not sizes["tied"]:
        yield "output.weight", "out.weight", (n_vocab, d)
    for layer in range(sizes["n_layers"]):
        for theirs, ours, shape in (
            ("attn_norm", "norm_1.gain", (d,)),
            ("attn_q", "attention.W_q.weight", (d, d)),
            ("attn_k", "attention.W_k.weight", (d_kv, d)),
            ("attn_v", "attention.W_v.weight", (d_kv, d)),
            ("attn_output", "attention.W_o.weight", (d, d)),
            ("ffn_norm", "norm_2.gain", (d,)),
            ("ffn_gate", "feed_forward.W_gate.weight", (d_ff, d)),
            ("ffn_up", "feed_forward.W_up.weight", (d_ff, d)),
            ("ffn_down", "feed_forward.W_down.weight", (d, d_ff)),
        ):
            yield f"blk.{layer}.{theirs}.weight", f"blocks.{layer}.{ours}", shape


def gguf_weights(file: GGUF, sizes: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights in float32 by the names of a ``Llama`` of these sizes.

    Raises ``ValueError`` for a tensor that is missing, of another shape than the fields say, stored
    in a way that ``gguf`` does not read, or not among those of a ``Llama``.
    """
    from gguf import dequantize

    state, rest = {}, dict(file.tensors)
    for name, ours, shape in names_and_shapes(sizes):
        if (stored := rest.pop(name, None)) is None:
            raise ValueError(f"{file.path}: the tensor {name} is missing; {ANOTHER_FILE_HINT}")
        got = tuple(int(length) for length in reversed(stored.shape))
        if got != shape:
            raise ValueError(f"{file.path}: {name}: its fields say shape {shape}, it has {got}")
        try:
            numbers = dequantize(stored.data, stored.tensor_type)
        except NotImplementedError:
            how = stored.tensor_type.name
            raise ValueError(
                f"{file.path}: {name} is stored as {how}, which gguf does not read; take a file in "
                "Q4_0, Q4_1, Q8_0, F16 or F32"
            ) from None
        state[ours] = torch.from_numpy(np.require(numbers, np.float32, ["W", "C"]).reshape(shape))
    for name in rest:
        raise ValueError(f"{file.path}: a Llama here has no tensor {name}; {ANOTHER_FILE_HINT}")
    return state
