"""Models of ``transformers`` under this course's names. It needs no ``transformers``."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor, nn

NORMS = {"ln_1": "norm_1", "ln_2": "norm_2"}


def gpt2_sizes(model: nn.Module) -> dict[str, Any]:
    """Return the arguments of a ``GPTConfig``; ``ValueError`` for a model unlike a ``GPT``."""
    theirs: Any = getattr(model, "config", None)
    if getattr(theirs, "model_type", None) != "gpt2" or not hasattr(model, "lm_head"):
        raise ValueError(f"model: expected a GPT2LMHeadModel, got {type(model).__name__}")
    for name, expected in (
        ("activation_function", ("gelu_new", "gelu_pytorch_tanh")),
        ("layer_norm_epsilon", (1e-5,)),
        ("scale_attn_weights", (True,)),
        ("scale_attn_by_inverse_layer_idx", (False,)),
        ("add_cross_attention", (False,)),
    ):
        if getattr(theirs, name) not in expected:
            raise ValueError(f"model: expected {name} = {expected[0]}, got {getattr(theirs, name)}")
    return {
        "n_vocab": theirs.vocab_size,
        "max_length": theirs.n_positions,
        "d_model": theirs.n_embd,
        "n_heads": theirs.n_head,
        "n_layers": theirs.n_layer,
        "d_ff": theirs.n_inner,
        "tied": theirs.tie_word_embeddings,
    }


def gpt2_weights(model: Any) -> dict[str, Tensor]:
    """Return the weights of a GPT-2 by the names of a ``GPT``.

    GPT-2 stores a linear layer's weight as (in, out), the transpose of ``nn.Linear``'s, and those
    of queries, keys and values side by side.
    """
    theirs, state = model.transformer, {}
    state["tokens.weight"] = theirs.wte.weight
    state["positions.table"] = theirs.wpe.weight
    state["out.weight"] = model.lm_head.weight
    state |= {"norm.gain": theirs.ln_f.weight, "norm.bias": theirs.ln_f.bias}
    for number, block in enumerate(theirs.h):
        to = f"blocks.{number}"
        for name, ours in NORMS.items():
            norm = getattr(block, name)
            state |= {f"{to}.{ours}.gain": norm.weight, f"{to}.{ours}.bias": norm.bias}
        weights, biases = block.attn.c_attn.weight.chunk(3, dim=1), block.attn.c_attn.bias.chunk(3)
        layers = {
            f"attention.{name}": pair
            for name, pair in zip(
                ("W_q", "W_k", "W_v"), zip(weights, biases, strict=True), strict=True
            )
        }
        for name, layer in (
            ("attention.W_o", block.attn.c_proj),
            ("feed_forward.W_1", block.mlp.c_fc),
            ("feed_forward.W_2", block.mlp.c_proj),
        ):
            layers[name] = layer.weight, layer.bias
        for name, (weight, bias) in layers.items():
            state |= {f"{to}.{name}.weight": weight.T, f"{to}.{name}.bias": bias}
    return state


def vit_sizes(model: nn.Module) -> dict[str, int]:
    """Return the arguments of a ``VisionTransformer``; ``ValueError`` for a model unlike it."""
    theirs: Any = getattr(model, "config", None)
    if getattr(theirs, "model_type", None) != "vit" or not hasattr(model, "classifier"):
        raise ValueError(f"model: expected a ViTForImageClassification, got {type(model).__name__}")
    for name, expected in (
        ("hidden_act", "gelu"),
        ("qkv_bias", True),
        ("intermediate_size", 4 * theirs.hidden_size),
    ):
        if getattr(theirs, name) != expected:
            raise ValueError(f"model: expected {name} = {expected}, got {getattr(theirs, name)}")
    return {
        "image_size": theirs.image_size,
        "patch": theirs.patch_size,
        "n_channels": theirs.num_channels,
        "n_classes": theirs.num_labels,
        "d_model": theirs.hidden_size,
        "n_heads": theirs.num_attention_heads,
        "n_layers": theirs.num_hidden_layers,
    }


VIT_NAMES = {  # theirs, ours
    "attention.q_proj": "attention.W_q",
    "attention.k_proj": "attention.W_k",
    "attention.v_proj": "attention.W_v",
    "attention.o_proj": "attention.W_o",
    "mlp.fc1": "feed_forward.W_1",
    "mlp.fc2": "feed_forward.W_2",
}


def vit_weights(model: Any) -> dict[str, Tensor]:
    """Return the weights of a ViT by the names of a ``VisionTransformer``."""
    embeddings = model.vit.embeddings
    patches = embeddings.patch_embeddings.projection  # a convolution with no overlap
    state = {
        "class_token": embeddings.cls_token.flatten(),
        "positions": embeddings.position_embeddings[0],
        "project.weight": patches.weight.flatten(1),
        "project.bias": patches.bias,
    }
    norms = {"norm": model.vit.layernorm}
    for number, layer in enumerate(model.vit.layers):
        to = f"blocks.{number}"
        norms |= {f"{to}.norm_1": layer.layernorm_before, f"{to}.norm_2": layer.layernorm_after}
        for theirs, ours in VIT_NAMES.items():
            linear = layer.get_submodule(theirs)
            state |= {f"{to}.{ours}.weight": linear.weight, f"{to}.{ours}.bias": linear.bias}
    for name, norm in norms.items():
        state |= {f"{name}.gain": norm.weight, f"{name}.bias": norm.bias}
    return state | {"out.weight": model.classifier.weight, "out.bias": model.classifier.bias}


LLAMA_NAMES = {  # theirs, ours
    "input_layernorm.weight": "norm_1.gain",
    "self_attn.q_proj.weight": "attention.W_q.weight",
    "self_attn.k_proj.weight": "attention.W_k.weight",
    "self_attn.v_proj.weight": "attention.W_v.weight",
    "self_attn.o_proj.weight": "attention.W_o.weight",
    "post_attention_layernorm.weight": "norm_2.gain",
    "mlp.gate_proj.weight": "feed_forward.W_gate.weight",
    "mlp.up_proj.weight": "feed_forward.W_up.weight",
    "mlp.down_proj.weight": "feed_forward.W_down.weight",
}


def transformers_sizes(model: Any) -> dict[str, Any]:
    """Return the arguments of a ``LlamaConfig``.

    Raises ``ValueError`` for a model unlike a ``Llama``.
    """
    theirs: Any = getattr(model, "config", None)
    if getattr(theirs, "model_type", None) != "llama" or not hasattr(model, "lm_head"):
        raise ValueError(f"model: expected a LlamaForCausalLM, got {type(model).__name__}")
    turns = getattr(theirs, "rope_parameters", None) or {"rope_theta": theirs.rope_theta}
    for name, got, expected in (
        ("hidden_act", theirs.hidden_act, "silu"),
        ("attention_bias", theirs.attention_bias, False),
        ("mlp_bias", theirs.mlp_bias, False),
        ("head_dim", model.model.layers[0].self_attn.head_dim,
         theirs.hidden_size // theirs.num_attention_heads),
        ("rope_type", turns.get("rope_type", "default"), "default"),
    ):  # fmt: skip
        if got != expected:
            raise ValueError(f"model: expected {name} = {expected}, got {got}")
    return {
        "n_vocab": theirs.vocab_size,
        "max_length": theirs.max_position_embeddings,
        "d_model": theirs.hidden_size,
        "n_heads": theirs.num_attention_heads,
        "n_kv_heads": theirs.num_key_value_heads,
        "n_layers": theirs.num_hidden_layers,
        "d_ff": theirs.intermediate_size,
        "base": turns["rope_theta"],
        "eps": theirs.rms_norm_eps,
        "tied": theirs.tie_word_embeddings,
    }


def transformers_weights(model: Any) -> dict[str, Tensor]:
    """Return the weights of a Llama by the names of ours; rows of W_q and W_k are as they were."""
    theirs = model.model
    state = {"tokens.weight": theirs.embed_tokens.weight, "norm.gain": theirs.norm.weight}
    state["out.weight"] = model.lm_head.weight
    for number, layer in enumerate(theirs.layers):
        for name, ours in LLAMA_NAMES.items():
            state[f"blocks.{number}.{ours}"] = layer.get_parameter(name)
    return {name: weight.detach() for name, weight in state.items()}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
SINGLE_DIGITS = {"type": "Digits", "individual_digits": True}


def transformers_pieces(folder: Path) -> dict[str, Any]:
    """Return the arguments of ``BytePairs``, from the folder of a model of ``transformers``.

    Raises ``ValueError`` where the files are missing, and for pieces that are made otherwise.
    """
    try:
        made = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        about = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: its tokenizer cannot be read ({error})") from None
    model, steps = made["model"], made["pre_tokenizer"] or {}
    steps = [
        {name: step[name] for name in (BYTE_LEVEL | SINGLE_DIGITS) if name in step}
        for step in steps.get("pretokenizers", [steps])
    ]
    if model["type"] != "BPE" or made["normalizer"] or steps[-1:] != [BYTE_LEVEL]:
        raise ValueError(f"{folder}: expected pairs of bytes, words cut as in GPT-2")
    if steps[:-1] not in ([], [SINGLE_DIGITS]):
        raise ValueError(f"{folder}: expected words cut as in GPT-2, got {steps[:-1]} before")
    ids = model["vocab"] | {token["content"]: token["id"] for token in made["added_tokens"]}
    pairs = (tuple(p.split(" ")) if isinstance(p, str) else tuple(p) for p in model["merges"])
    end = about.get("eos_token")
    end = end["content"] if isinstance(end, dict) else end
    written = folder / "chat_template.jinja"
    merges_written = written.read_text(encoding="utf-8") if written.exists() else ""
    return {
        "tokens": tuple(sorted(ids, key=ids.__getitem__)),
        "ranks": {pair: rank for rank, pair in enumerate(pairs)},
        "special": frozenset(token["id"] for token in made["added_tokens"]),
        "digits": steps[:-1] == [SINGLE_DIGITS],
        "template": about.get("chat_template") or merges_written,
        "end": ids.get(end),
    }
