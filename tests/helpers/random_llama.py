"""Llamas with random weights, and the same by the transformers library."""

import torch
from torch import nn

from attncourse.llama import (
    Llama,
    LlamaConfig,
)

SIZES = {"d_model": 54, "n_heads": 9, "n_kv_heads": 3, "d_ff": 29, "base": 100.0}


def shaken(module: nn.Module, std: float = 0.4) -> nn.Module:
    """The module with weights large enough that every step counts, and gains unlike 1."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=std, generator=generator).add_(parameter.ndim == 1)
    return module.eval()


def llama(**changed) -> Llama:
    sizes = {"n_vocab": 61, "max_length": 97, "n_layers": 2} | SIZES | changed
    return shaken(Llama(LlamaConfig(**sizes)), 0.2)


def some_ids(*shape: int) -> torch.Tensor:
    return torch.randint(61, shape, generator=torch.Generator().manual_seed(3))


def their_config(transformers, **changed):
    settings = {
        "vocab_size": 61, "hidden_size": 54, "num_attention_heads": 9, "num_key_value_heads": 3,
        "num_hidden_layers": 2, "intermediate_size": 29, "max_position_embeddings": 97,
        "attn_implementation": "eager",
    }  # fmt: skip
    return transformers.LlamaConfig(**settings | changed)


def their_llama(transformers, **changed) -> nn.Module:
    return shaken(transformers.LlamaForCausalLM(their_config(transformers, **changed)), 0.2)
