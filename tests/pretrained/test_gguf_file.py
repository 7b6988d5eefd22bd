"""GGUF files: a small Llama written and read again, and what is no such file."""

import random

import numpy as np
import pytest
import torch

from attncourse.llama import Llama
from attncourse.pretrained.byte_pairs import BytePairs
from attncourse.pretrained.model import load
from attncourse.support.gguf_file import gguf_sizes, read_gguf
from helpers.random_llama import some_ids
from helpers.small_byte_pairs import TEMPLATE
from helpers.small_llama import N_VOCAB, WORDS, a_llama, gguf, written


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_comes_back_from_its_file(tmp_path, tied):
    model, ids = a_llama(tied=tied, eps=3e-5), some_ids(2, 11)
    again, words = load(written(tmp_path / "a.gguf", model))
    assert again.config == model.config
    torch.testing.assert_close(again(ids), model(ids), atol=1e-6, rtol=1e-6)
    assert words == BytePairs(WORDS.tokens, WORDS.ranks, WORDS.special, True, TEMPLATE, 0)
    file = read_gguf(tmp_path / "a.gguf")
    assert read_gguf(file) is file


def test_numbers_of_16_and_of_8_bits_are_read(tmp_path):
    model = a_llama(d_model=64, n_heads=8, n_kv_heads=4)
    weight = model.blocks[1].feed_forward.W_up.weight.detach()
    half = model.blocks[0].attention.W_q.weight.detach().half()
    name = "blk.1.ffn_up.weight"
    codes = gguf.quantize(weight.numpy(), gguf.GGMLQuantizationType.Q8_0)
    tensors = {name: (codes, gguf.GGMLQuantizationType.Q8_0), "blk.0.attn_q.weight": half}
    again = Llama.from_gguf(written(tmp_path / "a.gguf", model, tensors))
    torch.testing.assert_close(
        again.blocks[1].feed_forward.W_up.weight.detach(), weight, atol=0.01, rtol=0
    )
    assert torch.equal(again.blocks[0].attention.W_q.weight.detach(), half.float())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "qwen2"}, "expected the architecture llama, got qwen2"),
        ({"block_count": 3}, r"the tensor blk\.2\.attn_norm\.weight is missing"),
        ({"block_count": 1}, r"a Llama here has no tensor blk\.1\."),
        ({"feed_forward_length": 31}, r"its fields say shape \(31, 54\), it has \(32, 54\)"),
        ({"embedding_length": 45}, r"its fields say shape \(\d+, 45\), it has \(\d+, 54\)"),
        ({"attention.head_count_kv": 9}, r"attn_k.*say shape \(54, 54\), it has \(18, 54\)"),
        ({"context_length": None}, "the field llama.context_length is missing"),
        ({"attention.key_length": 12}, "expected llama.attention.key_length = 6, got 12"),
        ({"rope.scaling.type": "linear"}, "expected llama.rope.scaling.type = none, got linear"),
        ({"attention.head_count": 0}, "expected a count in llama.attention.head_count, got 0"),
    ],
)
def test_a_model_unlike_a_llama_is_refused(tmp_path, changed, said):
    with pytest.raises(ValueError, match=said):
        Llama.from_gguf(written(tmp_path / "a.gguf", a_llama(), **changed))


def test_a_quantisation_that_gguf_does_not_read_is_refused(tmp_path):
    kind = gguf.GGMLQuantizationType.Q8_1
    rows = np.zeros((32, gguf.quant_shape_to_byte_shape((32, 64), kind)[-1]), np.uint8)
    model = a_llama(d_model=64, n_heads=8, n_kv_heads=4)
    path = written(tmp_path / "a.gguf", model, {"blk.0.ffn_up.weight": (rows, kind)})
    with pytest.raises(ValueError, match=r"ffn_up.weight is stored as Q8_1, which gguf does not"):
        Llama.from_gguf(path)


def test_tensors_that_a_llama_lacks_are_refused(tmp_path):
    path = written(tmp_path / "a.gguf", a_llama(), {"blk.0.attn_q.bias": torch.zeros(54)})
    with pytest.raises(ValueError, match=r"a Llama here has no tensor blk.0.attn_q.bias"):
        Llama.from_gguf(path)


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path):
    path = written(tmp_path / "a.gguf", a_llama())
    whole = path.read_bytes()
    lengths = {0, 1, 3, 4, 23, 24, 100, len(whole) - 1, *range(0, len(whole), len(whole) // 37)}
    for length in sorted(lengths - {len(whole)}):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"a\.gguf: (is cut off|cannot be read)"):
            Llama.from_gguf(path)
    path.write_bytes(b"PK" + whole[2:])
    with pytest.raises(ValueError, match="is cut off or no GGUF file"):
        Llama.from_gguf(path)
    with pytest.raises(ValueError, match="there is no such file"):
        Llama.from_gguf(tmp_path / "none.gguf")


def test_a_changed_byte_is_read_as_another_model_or_refused(tmp_path):
    """Whatever stands in the head of a file, it is a model or one sentence."""
    path = written(tmp_path / "a.gguf", a_llama())
    whole, draw, refused = path.read_bytes(), random.Random(7), []
    head = whole.index(b"output_norm.weight")
    for _ in range(150):
        content = bytearray(whole)
        content[draw.choice([draw.randrange(head), draw.randrange(700)])] = draw.randrange(256)
        path.write_bytes(content)
        try:
            load(path)
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert [said for said in refused if not said.startswith(str(path))] == []


def test_fields_that_are_no_text_are_refused(tmp_path):
    path = written(tmp_path / "a.gguf", a_llama())
    content = path.read_bytes().replace(b"smollm", b"sm\xff\xfelm")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"the field tokenizer.ggml.pre is no text"):
        BytePairs.from_gguf(path)


def test_words_that_are_cut_otherwise_are_refused(tmp_path):
    path = written(tmp_path / "a.gguf", a_llama())
    path.write_bytes(path.read_bytes().replace(b"smollm", b"qwen2b"))
    with pytest.raises(ValueError, match=r"expected tokenizer.ggml.pre = smollm or gpt-2, got q"):
        BytePairs.from_gguf(path)
    assert Llama.from_gguf(path).config.n_vocab == N_VOCAB


def test_a_folder_of_transformers_is_read(tmp_path):
    transformers = pytest.importorskip("transformers")
    from helpers.random_llama import their_llama
    from helpers.small_byte_pairs import theirs

    model = their_llama(transformers, vocab_size=N_VOCAB, tie_word_embeddings=True)
    model.save_pretrained(tmp_path)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=theirs(WORDS), eos_token="<|end|>", chat_template=TEMPLATE
    )
    fast.save_pretrained(tmp_path)
    ours, words = load(tmp_path)
    ids = some_ids(1, 7)
    torch.testing.assert_close(ours(ids), model(ids).logits, atol=1e-5, rtol=1e-5)
    assert words == BytePairs(WORDS.tokens, WORDS.ranks, WORDS.special, True, TEMPLATE, 0)
    text = "Bettina's 7 otters<|end|>"
    assert words.encode(text).tolist() == fast.encode(text, add_special_tokens=False)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="its tokenizer cannot be read"):
        load(tmp_path)


def test_sizes_are_read_from_the_fields(tmp_path):
    file = read_gguf(written(tmp_path / "a.gguf", a_llama()))
    assert gguf_sizes(file)["eps"] == 1e-5
    with pytest.raises(ValueError, match=r"the field general.nothing is missing"):
        file.field("general.nothing")
