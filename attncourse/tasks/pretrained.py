"""Real GPT-2, where there is a network: its weights in a ``GPT``, with its tokenizer."""

from typing import Any

from attncourse.gpt import GPT


def gpt2_from_hub(name: str = "gpt2") -> tuple[GPT, Any]:
    """Return a pretrained GPT-2 as a ``GPT``, and its tokenizer; ``"gpt2"`` has 124M numbers.

    Needs ``transformers`` and, the first time, a network. Raises ``ImportError`` or ``OSError``
    where one of them is missing.
    """
    from transformers import AutoTokenizer, GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(name)
    return GPT.from_huggingface(model), AutoTokenizer.from_pretrained(name)
