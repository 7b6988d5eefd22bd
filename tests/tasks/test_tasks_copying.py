"""Chapter 11's tasks and reader: answers by plain loops, and what each encoding can know."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attncourse.tasks.copying import ENCODINGS, Reader, copy, distance_named, reverse, sequences


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("n", "back"), [(8, 1), (8, 3), (32, 1), (2, 1)])
def test_copy_asks_for_the_letter_a_distance_back(n, back):
    ids, answer = copy(n, back)(20, generator())
    assert ids.shape == (20, n)
    for letters, right in zip(ids.tolist(), answer.tolist(), strict=True):
        assert len(set(letters)) == n
        assert set(letters) <= set(range(32))
        assert right == [letters[i - back] for i in range(back, n)]


def test_reverse_asks_every_position_for_its_mirror_image():
    ids, answer = reverse(7)(20, generator())
    for letters, right in zip(ids.tolist(), answer.tolist(), strict=True):
        assert right == [letters[6 - i] for i in range(7)]


def test_bad_lengths_are_refused():
    with pytest.raises(ValueError, match="expected 1 to 32 different letters, got 33"):
        sequences(2, 33, generator())
    with pytest.raises(ValueError, match="back: expected 1 to 7 positions, got 8"):
        copy(8, back=8)
    with pytest.raises(ValueError, match=r"encoding: expected one of none, .*got 'rope'"):
        Reader("rope")


def random_reader(encoding, **options):
    torch.manual_seed(0)
    model = Reader(encoding, **options).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def test_order_does_not_matter_without_positions():
    ids, _ = copy(8)(5, generator())
    p = torch.tensor([3, 0, 6, 4, 2, 1, 7, 5])
    for encoding in ENCODINGS:
        model = random_reader(encoding)
        same = torch.allclose(model(ids[:, p]), model(ids)[:, p], atol=1e-6)
        assert same == (encoding == "none")


def test_alibi_without_a_mask_cannot_tell_left_from_right():
    ids, _ = copy(8)(5, generator())
    for encoding, causal, same in (
        ("ALiBi", False, True), ("ALiBi", True, False), ("RoPE", False, False)
    ):  # fmt: skip
        model = random_reader(encoding, causal=causal)
        assert torch.allclose(model(ids.flip(1)), model(ids).flip(1), atol=1e-6) == same


def test_a_causal_reader_does_not_see_what_comes_later():
    ids, _ = copy(8)(5, generator())
    changed_ids = ids.clone()
    changed_ids[:, 5:] = ids[:, 5:].flip(1)
    for causal in (True, False):
        model = random_reader("RoPE", causal=causal)
        assert torch.allclose(model(ids)[:, :5], model(changed_ids)[:, :5]) == causal


def test_the_pace_stretches_the_positions_of_rope():
    """Two letters at a pace of 3 compute what the first and the fourth of four places would."""
    model = random_reader("RoPE", layers=1, heads=1, pace=3.0)
    ids = torch.tensor([[4, 9]])
    x = model.letters(ids)[0]
    q, k, v = model.views[0](x).chunk(3, dim=-1)
    z = torch.polar(torch.ones(16).double(), 3 * 10000.0 ** (-torch.arange(16).double() / 16))
    q, k = (torch.view_as_complex(y.reshape(2, 16, 2)) for y in (q, k))
    turn = torch.stack([z**0, z])
    scores = ((q * turn) @ (k * turn).conj().T).real / 32**0.5
    out = x + model.back[0](scores.softmax(-1) @ v)
    assert torch.allclose(model(ids)[0], model.read_out(out), atol=1e-5)


class NamesLetterBack(nn.Module):
    """Names the letter ``back`` positions before, and its own where there is none."""

    def __init__(self, back: int):
        super().__init__()
        self.back = back

    def forward(self, ids):
        named = torch.cat([ids[:, : self.back], ids[:, : -self.back]], dim=1)
        return F.one_hot(named, 32).float()


def test_distances_are_counted_only_where_an_answer_is_due():
    shares = distance_named(NamesLetterBack(3), 10, first=4)
    assert shares.tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    shares = distance_named(NamesLetterBack(3), 10, first=1)  # positions 1 and 2 name themselves
    assert shares[0] == pytest.approx(2 / 9)
    assert shares[3] == pytest.approx(7 / 9)
