"""SmolLM2 through the chapters' parts, against ``transformers`` and ``tokenizers``, where it is.

``PYTHONPATH=tests python tests/milestones/test_real_model.py`` makes the oracle anew, with
``transformers`` reading the same file: half a minute and 1.5 GB.
"""

import json
from pathlib import Path

import pytest
import torch

from attncourse.gpt import next_token_loss
from attncourse.pretrained.byte_pairs import SYMBOLS
from helpers.small_byte_pairs import texts, theirs

ORACLE = Path(__file__).parents[1] / "fixtures" / "smollm2_logits.json"
TEXTS = (
    "My cat is small, cute, and fluffy. She likes belly rubs.",
    "<|im_start|>user\nWie viel ist 17 + 25?<|im_end|>\n<|im_start|>assistant\n",
)
STEP_OF_IDS = 997  # one logit of so many is kept


def test_logits_are_those_of_transformers(real_model):
    model, words = real_model
    stored = json.loads(ORACLE.read_text(encoding="utf-8"))
    assert [text_record["text"] for text_record in stored] == list(TEXTS)
    for text_record in stored:
        ids = words.encode(text_record["text"])
        assert ids.tolist() == text_record["ids"]
        with torch.no_grad():
            logits = model(ids)
        right = torch.tensor(text_record["logits"])
        torch.testing.assert_close(logits[:, ::STEP_OF_IDS], right, atol=1e-3, rtol=0)
        assert float(right.abs().max()) > 10
        assert logits.argmax(-1).tolist() == text_record["likeliest"]
        assert abs(float(next_token_loss(logits, ids)) - text_record["nats"]) < 1e-4


def test_a_cache_changes_nothing(real_model):
    model, words = real_model
    ids, rows, cache = words.encode(TEXTS[0]), [], []
    with torch.no_grad():
        for piece in ids.split([9, 1, 6]):
            logits, cache = model(piece, cache)
            rows.append(logits)
        torch.testing.assert_close(torch.cat(rows), model(ids), atol=1e-3, rtol=0)


def test_sizes_and_vocabulary_are_those_of_the_file(real_model):
    model, words = real_model
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert (len(words.tokens), len(words.ranks)) == (49_152, 48_900)
    assert model.max_length == 8192
    with pytest.raises(ValueError, match="at most 8192 tokens, got 8193"):
        model(torch.zeros(8193, dtype=torch.int64))


def test_a_question_is_answered(real_model):
    model, words = real_model
    prompt = words.chat("What is the capital of France?")
    answer = model.generate(prompt, 20, stop=words.end)[len(prompt) :]
    assert words.decode(answer) == "The capital of France is Paris.<|im_end|>"


def test_ids_are_those_of_tokenizers_and_come_back_as_the_text(real_model):
    _, words = real_model
    right = theirs(words)
    for text in texts(10_000, 11, special=("<|im_end|>", "<|im_start|>", "<repo_name>")):
        ids = words.encode(text)
        assert ids.tolist() == right.encode(text, add_special_tokens=False).ids, ascii(text)
        # Six control characters have no piece; all else comes back.
        assert words.decode(ids) == "".join(c for c in text if SYMBOLS[c.encode()[0]] in words.ids)


def oracle() -> list[dict]:
    """Return what ``transformers`` computes for the texts from the same file."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    from attncourse.pretrained.model import load, model_file

    _, words = load()
    config = LlamaConfig(**load_gguf_checkpoint(str(model_file()))["config"])
    with torch.device("meta"):
        empty = LlamaForCausalLM(config)
    read = load_gguf_checkpoint(str(model_file()), return_tensors=True, model_to_load=empty)
    model = LlamaForCausalLM(config)
    missing, unexpected = model.load_state_dict(read["tensors"], strict=False)
    assert (missing, unexpected) in (([], []), (["lm_head.weight"], [])), (missing, unexpected)
    model.tie_weights()
    records = []
    for text in TEXTS:
        ids = torch.tensor(theirs(words).encode(text, add_special_tokens=False).ids)
        with torch.no_grad():
            logits = model.eval()(ids[None]).logits[0]
        records.append({
            "text": text, "ids": ids.tolist(), "likeliest": logits.argmax(-1).tolist(),
            "nats": round(float(next_token_loss(logits, ids)), 6),
            "logits": [[round(x, 5) for x in row] for row in logits[:, ::STEP_OF_IDS].tolist()],
        })  # fmt: skip
    return records


if __name__ == "__main__":
    ORACLE.write_text(json.dumps(oracle(), ensure_ascii=False) + "\n", encoding="utf-8")
