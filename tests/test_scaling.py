"""Chapter 7: the package against PyTorch and closed forms, and other right answers."""

import math
import random
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attncourse.checks import examine, exercises
from attncourse.checks.callers import typical_sizes
from attncourse.scaling import (
    attention_entropy,
    scale_scores,
    score_variance,
    softmax_jacobian,
)
from helpers.random_arrays import normal
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def variance_numpy(d_k, n_samples, seed):
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(n_samples, d_k)), rng.normal(size=(n_samples, d_k))
    return np.var(np.einsum("nd,nd->n", q, k))  # divided by n_samples


def variance_loops(d_k, n_samples, seed):
    draw = random.Random(seed).gauss
    scores = [sum(draw(0, 1) * draw(0, 1) for _ in range(d_k)) for _ in range(n_samples)]
    return statistics.variance(scores)


def variance_global_seed(d_k, n_samples, seed):
    torch.manual_seed(seed)
    q, k = torch.randn(n_samples, 1, d_k), torch.randn(n_samples, d_k, 1)
    return torch.bmm(q, k).var()  # a tensor, and the global generator


def variance_einops(d_k, n_samples, seed):
    from einops import einsum

    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, n_samples, d_k, generator=generator, dtype=torch.float64)
    return float(einsum(q, k, "n d, n d -> n").var(correction=0))


def variance_of_mean_square(d_k, n_samples, seed):
    """The mean is known to be 0; queries and keys from two generators."""
    q = np.random.RandomState(seed).randn(d_k, n_samples)
    k = np.random.RandomState(seed + 1).randn(d_k, n_samples)
    return np.mean((q * k).sum(axis=0) ** 2)


def variance_one_pass(d_k, n_samples, seed):
    rng, mean, total = np.random.default_rng(seed), 0.0, 0.0
    for count in range(1, n_samples + 1):
        score = rng.normal(size=d_k) @ rng.normal(size=d_k)
        step = score - mean
        mean += step / count
        total += step * (score - mean)
    return total / (n_samples - 1)


def variance_covariance(d_k, n_samples, seed):
    g = torch.Generator()
    g.manual_seed(seed)
    pairs = torch.empty(n_samples, 2, d_k).normal_(generator=g)
    return torch.cov(pairs.prod(dim=1).sum(dim=1)).item()


def scale_loops(scores, d_k):
    out = torch.empty_like(scores)
    for index in np.ndindex(*scores.shape):
        out[index] = scores[index] / d_k**0.5
    return out


def scale_einops(scores, d_k):
    from einops import einsum

    return einsum(scores, torch.tensor(d_k**-0.5, dtype=scores.dtype), "... m n, -> ... m n")


def entropy_where(weights):
    logs = torch.where(weights > 0, weights, torch.ones_like(weights)).log()
    return -(weights * logs).sum(-1)


def entropy_loops(weights):
    if weights.ndim > 1:
        return torch.stack([entropy_loops(row) for row in weights])
    return sum((-a * a.log() for a in weights if a > 0), torch.zeros((), dtype=weights.dtype))


def entropy_einops(weights):
    from einops import einsum

    return -einsum(weights, (weights + 1e-12).log(), "... n, ... n -> ...")


def entropy_float64(weights):
    a = weights.double()
    information = torch.where(a == 0, 0, -a.clamp_min(1e-300).log2()) * math.log(2)
    return (a * information).sum(-1).to(weights.dtype)


def jacobian_einops(p):
    from einops import einsum

    eye = torch.eye(p.shape[-1], dtype=p.dtype)
    return einsum(p, eye, "... i, i j -> ... i j") - einsum(p, p, "... i, ... j -> ... i j")


def jacobian_loops(p):
    n = p.shape[-1]
    entries = [[p[..., i] * (float(i == j) - p[..., j]) for j in range(n)] for i in range(n)]
    return torch.stack([torch.stack(row, dim=-1) for row in entries], dim=-2)


def jacobian_matmul(p):
    column = p.unsqueeze(-1)
    return torch.eye(p.size(-1), dtype=p.dtype) * column - column @ column.transpose(-2, -1)


def jacobian_in_two_steps(p):
    J = -p[..., None] * p[..., None, :]
    J.diagonal(dim1=-2, dim2=-1).add_(p)
    return J


def jacobian_float64(p):
    q = p.double()
    n = q.shape[-1]
    J = torch.vmap(lambda row: row.diag() - torch.outer(row, row))(q.reshape(-1, n))
    return J.reshape(*p.shape, n).to(p.dtype)


RIGHT = {
    "scaling.score_variance": [
        variance_numpy,
        variance_loops,
        variance_global_seed,
        variance_einops,
        variance_of_mean_square,
        variance_one_pass,
        variance_covariance,
    ],
    "scaling.scale_scores": [
        scale_loops,
        scale_einops,
        lambda scores, d_k: scores * d_k**-0.5,
        lambda scores, d_k: scores / torch.sqrt(torch.tensor(d_k, dtype=scores.dtype)),
        lambda scores, d_k: scores / torch.sqrt(torch.tensor(d_k)),  # a root in float32
        lambda scores, d_k: torch.divide(scores, np.sqrt(d_k)),
        lambda scores, d_k: (scores.double() / math.sqrt(d_k)).to(scores.dtype),
    ],
    "scaling.attention_entropy": [
        entropy_where,
        entropy_loops,
        entropy_einops,
        entropy_float64,
        lambda weights: -torch.xlogy(weights, weights).sum(dim=-1),
        lambda weights: -(weights * weights.clamp_min(1e-30).log()).sum(-1),
        lambda weights: (weights * weights.log()).nan_to_num().sum(-1).neg(),
    ],
    "scaling.softmax_jacobian": [
        jacobian_einops,
        jacobian_loops,
        jacobian_matmul,
        jacobian_in_two_steps,
        jacobian_float64,
        lambda p: p[..., :, None] * (torch.eye(p.shape[-1], dtype=p.dtype) - p[..., None, :]),
    ],
}

# --- the package -----------------------------------------------------------------------------


def test_scaling_by_hand():
    p = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    assert (16 * softmax_jacobian(p)).tolist() == [
        [[4, -2, -2], [-2, 3, -1], [-2, -1, 3]],
        [[0, 0, 0]] * 3,
    ]
    assert attention_entropy(p)[0].item() == pytest.approx(1.5 * math.log(2))
    assert str(attention_entropy(p)[1].item()) == "0.0"  # and not -0.0
    assert scale_scores(torch.tensor([[6.0, -3.0]]), 9).tolist() == [[2, -1]]
    torch.testing.assert_close(scale_scores(torch.ones(1, 1), 2).item(), 2**-0.5)


@pytest.mark.parametrize("d_k", [1, 3, 64, 4096])
def test_variance_is_d_k_within_five_standard_deviations(d_k):
    n_samples = 4000
    relative = math.sqrt((2 + 6 / d_k) / n_samples)
    for seed in range(3):
        assert abs(score_variance(d_k, n_samples, seed) / d_k - 1) < 5 * relative


@pytest.mark.parametrize("d_k", [1, 7])
def test_variance_scatters_as_its_docstring_says(d_k):
    n_samples = 500
    runs = np.array([score_variance(d_k, n_samples, seed) for seed in range(400)]) / d_k
    relative = math.sqrt((2 + 6 / d_k) / n_samples)
    assert runs.std() == pytest.approx(relative, rel=0.25)
    assert abs(runs.mean() - 1) < 5 * relative / 20


def test_variance_is_unbiased_in_chunks_too(monkeypatch):
    runs = [score_variance(3, 2, seed) for seed in range(3000)]
    assert np.mean(runs) == pytest.approx(3, rel=0.15)  # divided by n it would be 1.5
    assert score_variance(5, 7, 1) == score_variance(5, 7, 1) != score_variance(5, 7, 2)
    monkeypatch.setattr("attncourse.scaling.AT_ONCE", 64)
    assert abs(score_variance(16, 4001, 0) / 16 - 1) < 0.15


def test_variance_takes_little_memory(monkeypatch):
    largest, randn = [], torch.randn

    def watched(*shape, **options):
        largest.append(math.prod(shape))
        return randn(*shape, **options)

    monkeypatch.setattr(torch, "randn", watched)
    score_variance(1024, 3000, 0)
    assert max(largest) <= 2**20
    assert sum(largest) == 2 * 1024 * 3000


def test_variance_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    score_variance(4, 10, 0)
    assert torch.equal(torch.get_rng_state(), before)


BATCHES = st.sampled_from([(), (3,), (2, 3)])


@settings(deadline=None)
@given(n=st.integers(1, 7), batch=BATCHES, seed=st.integers(0, 9))
def test_jacobian_against_autograd(n, batch, seed):
    s = normal(*batch, n, seed=seed)
    J = softmax_jacobian(s.softmax(-1))
    assert J.shape == (*batch, n, n)
    for row, jacobian in zip(s.reshape(-1, n), J.reshape(-1, n, n), strict=True):
        expected = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
        torch.testing.assert_close(jacobian, expected, rtol=0, atol=1e-14)


@given(n=st.integers(2, 11), spread=st.floats(0.1, 12), seed=st.integers(0, 99))
def test_jacobian_is_symmetric_and_falls_with_saturation(n, spread, seed):
    p = (spread * normal(n, seed=seed)).softmax(-1)
    J = softmax_jacobian(p)
    assert torch.equal(J, J.mT)
    assert J.sum(-1).abs().max() < 1e-15
    eigenvalues = torch.linalg.eigvalsh(J)
    assert eigenvalues[0] > -1e-15
    assert eigenvalues[-1] <= 0.5 + 1e-15
    if p.max() >= 0.5:
        assert eigenvalues[-1] <= 2 * p.max() * (1 - p.max()) + 1e-15


@settings(deadline=None)
@given(n=st.integers(1, 7), batch=BATCHES, seed=st.integers(0, 9))
def test_entropy_against_the_librarys(n, batch, seed):
    weights = (2 * normal(*batch, n, seed=seed)).softmax(-1)
    H = attention_entropy(weights)
    assert H.shape == batch
    library_entropy = torch.distributions.Categorical(probs=weights).entropy()
    torch.testing.assert_close(H, library_entropy, rtol=0, atol=1e-12)
    assert ((H >= 0) & (H <= math.log(n) + 1e-12)).all()


def test_entropy_of_even_weights_and_of_none():
    assert attention_entropy(torch.ones(5) / 5).item() == pytest.approx(math.log(5))
    assert attention_entropy(torch.tensor([[0.0, 0.0], [0.5, 0.5]]))[0] == 0


def test_entropy_has_finite_gradients_through_a_mask():
    scores = normal(3, 5).requires_grad_()
    hidden = torch.tensor([False, True, False, False, True])
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    (gradient,) = torch.autograd.grad(attention_entropy(weights).sum(), scores)
    assert gradient.isfinite().all()
    assert (gradient[:, hidden] == 0).all()
    assert (gradient[:, ~hidden] != 0).all()


@given(m=st.integers(1, 5), n=st.integers(1, 7), batch=BATCHES, d_k=st.integers(1, 600))
def test_scaling_twice_divides_by_d_k(m, n, batch, d_k):
    scores = normal(*batch, m, n)
    twice = scale_scores(scale_scores(scores, d_k), d_k)
    torch.testing.assert_close(twice, scores / d_k, rtol=1e-14, atol=0)


def test_scaling_agrees_with_the_head_of_chapter_5():
    from attncourse.kqv import attention_scores, attention_weights

    query, key = normal(5, 7), normal(3, 7)
    scaled = scale_scores(attention_scores(query, key), 7)
    torch.testing.assert_close(scaled.softmax(-1), attention_weights(query, key))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    weights = normal(3, 40, dtype=dtype).softmax(-1)
    assert softmax_jacobian(weights).dtype == dtype
    assert attention_entropy(weights).dtype == dtype
    assert scale_scores(weights, 7).dtype == dtype


def test_gradients_pass_gradcheck():
    p = normal(2, 3).softmax(-1).requires_grad_()
    check = torch.autograd.gradcheck
    assert check(softmax_jacobian, (p,))
    assert check(attention_entropy, (p,))
    assert check(lambda s: scale_scores(s, 5), (normal(2, 3).requires_grad_(),))


def test_nan_appears_in_the_result():
    p = torch.tensor([[0.5, torch.nan], [0.5, 0.5]])
    assert attention_entropy(p).isnan().tolist() == [True, False]
    assert softmax_jacobian(p).isnan().any((-2, -1)).tolist() == [True, False]
    assert scale_scores(p, 4).isnan().tolist() == p.isnan().tolist()


ROWS = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])


test_bad_input_is_refused = refused(
    [
        (lambda: score_variance(0, 5, 0), "d_k: expected a whole number of at least 1", "got 0"),
        (lambda: score_variance(2.0, 5, 0), "d_k: expected a whole number", "got 2.0"),
        (lambda: score_variance(4, 1, 0), "n_samples: expected .* at least 2", "got 1"),
        (lambda: score_variance(4, 5, -1), "seed: expected .* at least 0", "got -1"),
        (lambda: score_variance(4, 5, None), "seed: expected a whole number", "got None"),
        (lambda: scale_scores(ROWS, 0), "d_k: expected a whole number", "got 0"),
        (lambda: scale_scores(ROWS, -4), "d_k: expected a whole number", "got -4"),
        (lambda: scale_scores(ROWS, 2.5), "d_k: expected a whole number", "got 2.5"),
        (lambda: scale_scores(ROWS[0], 4), r"scores: expected shape \(\.\.\., m, n\)", r"\(3,\)"),
        (lambda: scale_scores(ROWS.long(), 4), "floating-point tensor", "int64"),
        (lambda: scale_scores(ROWS.numpy(), 4), "scores: expected a torch tensor", "ndarray"),
        (lambda: scale_scores(ROWS[:0], 4), "at least one entry", r"\(0, 3\)"),
        (lambda: softmax_jacobian(ROWS.long()), "p: expected a floating-point", "int64"),
        (lambda: softmax_jacobian(ROWS - 0.5), "p: expected weights, none below 0", "-0.5"),
        (lambda: softmax_jacobian(2 * ROWS), "p: .* sum to 1 along the last axis", "sum of 2;"),
        (lambda: softmax_jacobian(ROWS[..., :0]), "at least one entry", r"\(2, 0\)"),
        (lambda: softmax_jacobian(torch.tensor(1.0)), r"p: expected shape \(\.\.\., n\)", r"\(\)"),
        (lambda: attention_entropy(ROWS.T), "weights: .* along another axis", "sum of 0.75;"),
        (lambda: attention_entropy(ROWS.log()), "none below 0", "-inf"),
        (lambda: attention_entropy([0.5, 0.5]), "weights: expected a torch tensor", "list"),
    ]
)


# --- the checks ------------------------------------------------------------------------------


def by_numpy(result, entries=None):
    """A wrong ``score_variance`` by another generator than the one in the bank."""

    def variance(d_k, n_samples, seed):
        rng = np.random.default_rng(seed + 1)
        draw = entries or (lambda rng, *shape: rng.normal(size=shape))
        return result(draw(rng, n_samples, d_k), draw(rng, n_samples, d_k))

    return variance


def sizes_exchanged(d_k, n_samples, seed):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(d_k, n_samples)) * rng.normal(size=(d_k, n_samples))).sum(1).var()


def unit_vectors(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def seeded_twice(d_k, n_samples, seed):
    q = np.random.default_rng(seed).normal(size=(n_samples, d_k))
    k = np.random.default_rng(seed).normal(size=(n_samples, d_k))
    return np.var((q * k).sum(-1))


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (by_numpy(lambda q, k: (q * k).sum(-1).std()), "the standard deviation"),
        (by_numpy(lambda q, k: (q * k).sum(0).var()), "summed over the samples"),
        (sizes_exchanged, "summed over the samples"),
        (by_numpy(lambda q, k: (q * k).var()), "1 whatever d_k is"),
        (by_numpy(lambda q, k: ((q * k).sum(-1) / q.shape[1] ** 0.5).var()), "1 whatever d_k is"),
        (by_numpy(lambda q, k: (q * k).mean(-1).var()), "1/d_k: vectors"),
        (by_numpy(lambda q, k: (q * k).sum(-1).var(), unit_vectors), "1/d_k: vectors"),
        (by_numpy(lambda q, k: (q * k).sum(-1).mean()), "the mean, not"),
        (by_numpy(lambda q, k: ((s := (q * k).sum(-1)) - s.mean()).mean()), "the mean, not"),
        (by_numpy(lambda q, k: ((q * k).sum(-1) ** 2).sum()), "squares summed"),
        (
            by_numpy(lambda q, k: (q * k).sum(-1).var(), lambda rng, *s: rng.uniform(size=s)),
            "entries between 0 and 1",
        ),
        (
            by_numpy(lambda q, k: (q * k).sum(-1).var(), lambda rng, *s: rng.uniform(-1, 1, s)),
            "entries between −1 and 1",
        ),
        (seeded_twice, "query and key are the same"),
        (by_numpy(lambda q, k: (k @ q[0]).var()), "one query for all keys"),
        (lambda d_k, n_samples, seed: variance_numpy(d_k, n_samples, None), "the seed is not"),
        (lambda d_k, n_samples, seed: float(d_k), "the same number for every seed"),
        (lambda d_k, n_samples, seed: variance_numpy(d_k, 700, seed), "n_samples is ignored"),
        (lambda d_k, n_samples, seed: variance_numpy(d_k, 10, seed), "n_samples is ignored"),
        (lambda d_k, n_samples, seed: variance_numpy(d_k, n_samples, seed or None), "a seed of 0"),
        (by_numpy(lambda q, k: (q @ k.T).var()), "every query with every key"),
        (by_numpy(lambda q, k: (q * k).sum(-1)), "many numbers"),
    ],
)
def test_a_mistake_is_named_whatever_the_generator(answer, name):
    verdict = examine("scaling.score_variance", answer, seed=0)  # which holds in three more draws
    assert not verdict.passed
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.name.startswith(name)


def test_right_answers_are_far_from_every_edge():
    """The margins that the checks' docstring promises, on what the cases really ask for."""
    tried = 0
    for criterion in exercises()["scaling.score_variance"].criteria:
        for case in criterion.cases(np.random.default_rng(0)):
            for d_k, n_samples in case.kwargs["calls"] if case.facts is typical_sizes else ():
                samples = n_samples * len(case.kwargs["seeds"])
                relative = math.sqrt((2 + 6 / d_k) / samples)
                edges = 2.0 ** (round(math.log2(d_k)) + np.array([-0.5, 0.5]))
                assert np.abs(edges / d_k - 1).min() / relative > 5.5
                tried += 1
    assert tried == 4


def test_a_result_that_is_no_plain_number_is_explained():
    for answer, message in (
        (lambda d_k, n_samples, seed: (1.0, 2.0), "returned a tuple, expected a number"),
        (lambda d_k, n_samples, seed: None, "returned a NoneType, expected a number"),
        (lambda d_k, n_samples, seed: np.zeros(3), r"returned shape (3,), expected one number"),
        (lambda d_k, n_samples, seed: math.nan, "returned NaN"),
    ):
        verdict = examine("scaling.score_variance", answer, seed=0)
        assert verdict.earned <= 1
        assert message in verdict.criteria[0].message + verdict.criteria[0].brief


def test_calling_the_librarys_function_is_caught():
    verdict = examine(
        "scaling.attention_entropy", lambda weights: torch.special.entr(weights).sum(-1), seed=0
    )
    assert verdict.earned == 0
    assert "called special_entr, which this exercise asks" in verdict.criteria[0].message
