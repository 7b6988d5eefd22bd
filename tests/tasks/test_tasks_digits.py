"""The tasks of chapter 15: the digits and their contest, and attention in windows."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attncourse.masking import shifted_window_mask
from attncourse.tasks import digits as task
from attncourse.tasks.windows import attend_in_windows, same_window, score_entries, seen_from
from attncourse.vision import patchify


@pytest.fixture(scope="module")
def images():
    return task.digits()[0]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_images_are_scikit_learns(images):
    from sklearn.datasets import load_digits

    loaded = load_digits()
    assert images.shape == (1797, 1, 8, 8)
    np.testing.assert_allclose(6 * images[:, 0] + 5, loaded.images, atol=1e-5)
    assert task.digits()[1].tolist() == loaded.target.tolist()
    assert abs(images.mean()) < 0.1
    assert abs(images.std() - 1) < 0.1


def test_folds_are_disjoint_and_test_each_image_once():
    tested = []
    for fold in range(task.FOLDS):
        parts = task.split(fold)
        assert sorted(torch.cat(parts).tolist()) == list(range(1797))
        tested += parts[2].tolist()
    assert sorted(tested) == list(range(1797))
    with pytest.raises(ValueError, match="0 to 3, got 4"):
        task.split(4)


def test_every_digit_has_an_example(images):
    labels = task.digits()[1]
    for digit, ink in enumerate(task.examples()):
        same = (images[:, 0] == task.normalise_ink(ink.float())).all(-1).all(-1)
        assert (labels[same] == digit).all()
        assert same.any()


def test_a_disorder_moves_whole_patches(images):
    sample = images[:50]
    for change in (task.fixed, task.fresh):
        moved = patchify(change(sample, generator()), 2)
        for before, after in zip(patchify(sample, 2), moved, strict=True):
            assert sorted(map(tuple, before.tolist())) == sorted(map(tuple, after.tolist()))
        assert not torch.equal(moved, patchify(sample, 2))
    ramp = torch.arange(64.0).reshape(1, 1, 8, 8).expand(3, 1, 8, 8)
    fixed, fresh = task.fixed(ramp), task.fresh(ramp, generator())
    assert torch.equal(fixed[0], fixed[1])
    assert not torch.equal(fresh[0], fresh[1])
    order = torch.arange(16).roll(1)
    assert torch.equal(
        patchify(task.reorder_patches(ramp, order), 2)[0, 1], patchify(ramp, 2)[0, 0]
    )


def test_each_image_is_moved_by_a_pixel_at_most(images):
    sample = images[:200]
    moved = task.moved_a_pixel(sample, torch.Generator().manual_seed(1))
    wide = F.pad(sample, (1, 1, 1, 1), value=-5 / 6)  # no ink around it
    shifts = {(r, c): wide[..., r : r + 8, c : c + 8] for r in range(3) for c in range(3)}
    matches_by_shift = {
        key: (moved == shifted).flatten(1).all(1) for key, shifted in shifts.items()
    }
    assert moved.shape == sample.shape
    assert torch.stack(list(matches_by_shift.values())).any(0).all()
    assert all(which.any() for which in matches_by_shift.values())  # every shift occurs among 200
    assert torch.equal(moved, task.moved_a_pixel(sample, torch.Generator().manual_seed(1)))


def test_without_positions_the_order_does_not_matter(images):
    torch.manual_seed(0)
    plain, usual = task.vit(positions=False).eval(), task.vit().eval()
    for model, same in ((plain, True), (usual, False)):
        off = task.answers(model, images[:9], task.fresh) - task.answers(model, images[:9])
        assert (off.abs().max() < 1e-5) == same
    assert not plain.positions.requires_grad


def test_the_interval_is_wilsons():
    low, high = task.wilson(90, 100)
    assert (round(low, 4), round(high, 4)) == (0.8256, 0.9448)  # Brown, Cai and DasGupta's formula
    assert task.wilson(0, 20)[0] == pytest.approx(0, abs=1e-12)
    assert task.wilson(20, 20)[1] == pytest.approx(1)
    with pytest.raises(ValueError, match="got 3 of 2"):
        task.wilson(3, 2)


def test_training_learns_and_is_reproducible(images):
    labels = task.digits()[1]
    runs = []
    for _ in range(2):
        torch.manual_seed(0)
        model = task.conv_net()
        runs.append(task.train(model, images[:320], labels[:320], epochs=4))
    assert runs[0] == runs[1]
    assert len(runs[0]) == 40
    assert np.mean(runs[0][-5:]) < 0.5 < np.mean(runs[0][:5])
    assert F.cross_entropy(task.answers(model, images[:320]), labels[:320]) < 0.5


def test_the_stored_contest_is_reproduced_by_a_run():
    stored = task.kept()
    assert list(stored) == ["made", *task.CONTESTANTS]
    for name in task.CONTESTANTS:
        assert stored[name]["rate"] in task.RATES
        for fold, wrong in enumerate(stored[name]["wrong"]):
            assert set(wrong) <= set(task.split(fold)[2].tolist())
    again = task.digits_contest(
        ["logistic regression"], rates=[stored["logistic regression"]["rate"]]
    )
    for new_wrong, stored_wrong in zip(
        again["logistic regression"]["wrong"], stored["logistic regression"]["wrong"], strict=True
    ):
        assert len(set(new_wrong) ^ set(stored_wrong)) <= 2  # other machines round otherwise
    right = 1 - sum(map(len, stored["vision transformer"]["wrong"])) / 1348
    assert right >= 0.97


# --- windows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_windows_are_the_mask_of_chapter_10_in_two_directions(shift):
    size, window = 12, 4
    x = torch.randn(2, size, size, 5, dtype=torch.float64)
    band = shifted_window_mask(size, window, shift)
    mask = (band[:, None, :, None] & band[None, :, None, :]).reshape(size**2, size**2)
    tokens = x.flatten(1, 2)
    scores = tokens @ tokens.mT / 5**0.5
    expected = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ tokens
    output = attend_in_windows(x, window, shift).flatten(1, 2)
    torch.testing.assert_close(output, expected, atol=1e-12, rtol=0)


def test_a_tokens_receptive_field_is_found_by_changing_others():
    seen = seen_from(2, 5, size=8, window=4, layers=3, shift=2)
    wrapped = seen_from(0, 0, size=8, window=4, layers=2, shift=2, wrap=True)
    assert int(seen_from(5, 5, size=12, window=4, layers=4, shift=0).sum()) == 16
    assert seen[2, 5]
    assert wrapped[-1, -1]
    assert not seen_from(0, 0, size=8, window=4, layers=2, shift=2)[-1, -1]
    counts = [
        int(seen_from(7, 7, size=16, window=4, layers=k, shift=2).sum()) for k in (1, 2, 3, 4)
    ]
    assert counts == [16, 64, 144, 256]


def test_windows_at_the_rim_are_smaller_and_scores_are_counted():
    assert same_window(8, 8, 4, 0).all()
    assert score_entries(6, 4) == 576
    assert score_entries(6, 4, 2) == 96
