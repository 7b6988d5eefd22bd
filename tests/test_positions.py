"""Chapter 11: the package against loops, rotations and transformers' Llama; other right answers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attncourse.checks import examine, exercises
from attncourse.checks.trying.trials import draw
from attncourse.kqv import AttentionHead, attention_scores, attention_weights
from attncourse.positions import (
    LearnedPositions,
    alibi_bias,
    apply_rope,
    rotation_matrix,
    sinusoidal_encoding,
)
from helpers.random_arrays import normal
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def refuse_odd(d):
    if d % 2 == 1:
        raise ValueError("d has to be even")


def sinusoidal_loops(n, d, base=10000.0):
    refuse_odd(d)
    PE = torch.zeros(n, d)
    for t in range(n):
        for i in range(d // 2):
            angle = t / base ** (2 * i / d)
            PE[t, 2 * i], PE[t, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return PE


def sinusoidal_by_logarithm(n, d, base=10000.0):
    """As most programs write it, in float32."""
    refuse_odd(d)
    PE = torch.empty(n, d)
    position = torch.arange(n).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d, 2) * (-math.log(base) / d))
    PE[:, 0::2] = torch.sin(position * div_term)
    PE[:, 1::2] = torch.cos(position * div_term)
    return PE


def sinusoidal_complex(n, d, base=10000.0):
    """In float64: e^(ia) has the cosine first, so the pair is turned around."""
    refuse_odd(d)
    angles = torch.outer(torch.arange(n).double(), base ** (-torch.arange(0, d, 2).double() / d))
    return torch.view_as_real(torch.polar(torch.ones_like(angles), angles)).flip(-1).reshape(n, d)


def sinusoidal_shifted_sine(n, d, base=10000.0):
    refuse_odd(d)
    column = np.arange(d)
    angles = np.arange(n)[:, None] / base ** (2 * (column // 2) / d) + np.pi / 2 * (column % 2)
    return torch.from_numpy(np.sin(angles)).float()


def sinusoidal_einops(n, d, base=10000.0):
    from einops import einsum, rearrange

    refuse_odd(d)
    angles = einsum(torch.arange(n).float(), base ** (-2 * torch.arange(d // 2) / d), "t, i -> t i")
    return rearrange([angles.sin(), angles.cos()], "two t i -> t (i two)")


def sinusoidal_by_rotation(n, d, base=10000.0):
    """Row after row, each turned on by one step."""
    refuse_odd(d)
    z = torch.exp(1j * torch.tensor([base ** (-2 * i / d) for i in range(d // 2)]).double())
    rows = [z**t for t in range(n)]
    return torch.stack([torch.stack([row.imag, row.real], dim=1).flatten() for row in rows]).float()


def rotation_loops(k, d):
    refuse_odd(d)
    R = torch.zeros(d, d)
    for i in range(d // 2):
        b = k / 10000 ** (2 * i / d)
        R[2 * i, 2 * i] = R[2 * i + 1, 2 * i + 1] = math.cos(b)
        R[2 * i, 2 * i + 1], R[2 * i + 1, 2 * i] = math.sin(b), -math.sin(b)
    return R


def rotation_exponential(k, d):
    """The exponential of k times the generator."""
    refuse_odd(d)
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i in range(0, d, 2):
        generator[i, i + 1], generator[i + 1, i] = 10000 ** (-i / d), -(10000 ** (-i / d))
    return torch.linalg.matrix_exp(k * generator)


def rotation_power(k, d):
    """One step, taken k times; back is the inverse."""
    step = rotation_loops(1, d).double()
    return torch.linalg.matrix_power(step if k >= 0 else step.T, abs(k)).float()


def rotation_einops(k, d):
    from einops import einsum, rearrange

    refuse_odd(d)
    b = k * 10000.0 ** (-torch.arange(0, d, 2) / d)
    small = rearrange([b.cos(), b.sin(), -b.sin(), b.cos()], "(r c) i -> i r c", r=2)
    eye = torch.eye(d // 2)
    return rearrange(einsum(small, eye, "i r c, i j -> i r j c"), "i r j c -> (i r) (j c)")


def rotation_of_unit_vectors(k, d):
    """Column by column, what RoPE by −k makes of the unit vectors."""
    refuse_odd(d)
    eye = torch.eye(d, dtype=torch.float64)
    return apply_rope(eye, torch.full((d,), -k)).T.float()


def rotation_diagonals(k, d):
    refuse_odd(d)
    b = k * 10000.0 ** (-2 * np.arange(d // 2) / d)
    beside = np.zeros(d - 1)
    beside[::2] = np.sin(b)
    R = np.diag(np.repeat(np.cos(b), 2)) + np.diag(beside, 1) - np.diag(beside, -1)
    return torch.from_numpy(R).float()


def float64_angles(x, positions, base):
    refuse_odd(x.shape[-1])
    d = x.shape[-1]
    omega = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return positions[:, None].to(torch.float64) * omega


def rope_loops(x, positions, base=10000.0):
    d = x.shape[-1]
    refuse_odd(d)
    tokens = []
    for t, position in enumerate(positions.tolist()):
        features = []
        for i in range(d // 2):
            angle = position / base ** (2 * i / d)
            a, b = x[..., t, 2 * i], x[..., t, 2 * i + 1]
            features += [a * math.cos(angle) - b * math.sin(angle),
                         a * math.sin(angle) + b * math.cos(angle)]  # fmt: skip
        tokens.append(torch.stack(features, dim=-1))
    return torch.stack(tokens, dim=-2)


def rope_complex(x, positions, base=10000.0):
    """As the Llama programs of Meta have it, in float64 inside."""
    angles = float64_angles(x, positions, base)
    z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x)


def rope_rotate_half(x, positions, base=10000.0):
    angles = float64_angles(x, positions, base).repeat_interleave(2, dim=-1)
    half = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)
    return x * angles.cos().to(x.dtype) + half * angles.sin().to(x.dtype)


def rope_by_matrices(x, positions, base=10000.0):
    """A matrix for each position."""
    angles = float64_angles(x, positions, base)
    cos, sin = torch.cos(angles), torch.sin(angles)
    small = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], -2)
    R = torch.stack([torch.block_diag(*blocks) for blocks in small]).to(x.dtype)  # (n, d, d)
    return (x.unsqueeze(-2) @ R).squeeze(-2)


def rope_einops(x, positions, base=10000.0):
    from einops import rearrange

    angles = float64_angles(x, positions, base)
    a, b = rearrange(x, "... n (i two) -> two ... n i", two=2)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    return rearrange([a * cos - b * sin, a * sin + b * cos], "two ... n i -> ... n (i two)")


def rope_written_into(x, positions, base=10000.0):
    angles = float64_angles(x, positions, base)
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin()
    out[..., 1::2] = x[..., 0::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return out


def rope_sequence_by_sequence(x, positions, base=10000.0):
    """A batch of any kind is taken apart, a row of sines and cosines mixed by fancy indices."""
    if x.ndim > 2:
        return torch.stack([rope_sequence_by_sequence(sequence, positions, base) for sequence in x])
    angles = float64_angles(x, positions, base).repeat_interleave(2, dim=-1)
    feature = torch.arange(x.shape[-1])
    beside = x[:, feature ^ 1] * torch.where(feature % 2 == 0, -1, 1).to(x.dtype)
    return (x * angles.cos() + beside * angles.sin()).to(x.dtype)


def alibi_loops(n_heads, n):
    bias = torch.zeros(n_heads, n, n)
    for h in range(n_heads):
        for i in range(n):
            for j in range(n):
                bias[h, i, j] = -abs(i - j) * 2 ** (-8 * (h + 1) / n_heads)
    return bias


def alibi_einops(n_heads, n):
    from einops import einsum

    slopes = 2 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    place = torch.arange(n).float()
    distance = (place[:, None] - place[None, :]).abs()
    return -einsum(slopes, distance, "h, i j -> h i j")


def alibi_cdist(n_heads, n):
    """In float64, which is allowed."""
    place = torch.arange(n, dtype=torch.float64)[:, None]
    ratio = 2 ** (-8 / n_heads)
    return -torch.stack([ratio ** (h + 1) * torch.cdist(place, place, p=1) for h in range(n_heads)])


def alibi_triangles(n_heads, n):
    past = torch.ones(n, n).tril().cumsum(0) - torch.ones(n, n).tril()
    slopes = torch.logspace(-8 / n_heads, -8, n_heads, base=2)
    return -(past + past.T) * slopes.reshape(-1, 1, 1)


def alibi_numpy(n_heads, n):
    slopes = np.exp2(-8.0 * np.arange(1, n_heads + 1) / n_heads)
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return torch.tensor(-np.multiply.outer(slopes, distance), dtype=torch.float32)


RIGHT = {
    "positions.sinusoidal_encoding": [
        sinusoidal_loops,
        sinusoidal_by_logarithm,
        sinusoidal_complex,
        sinusoidal_shifted_sine,
        sinusoidal_einops,
        sinusoidal_by_rotation,
    ],
    "positions.rotation_matrix": [
        rotation_loops,
        rotation_exponential,
        rotation_power,
        rotation_einops,
        rotation_of_unit_vectors,
        rotation_diagonals,
    ],
    "positions.apply_rope": [
        rope_loops,
        rope_complex,
        rope_rotate_half,
        rope_by_matrices,
        rope_einops,
        rope_written_into,
        rope_sequence_by_sequence,
    ],
    "positions.alibi_bias": [
        alibi_loops,
        alibi_einops,
        alibi_cdist,
        alibi_triangles,
        alibi_numpy,
    ],
}

# --- the package -----------------------------------------------------------------------------


@pytest.fixture
def float64():
    """float64 as torch's default dtype, for identities that rounding would hide."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_encodings_by_hand():
    PE = sinusoidal_encoding(3, 4)
    assert PE[0].tolist() == [0, 1, 0, 1]
    expected = [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]
    torch.testing.assert_close(PE[2], torch.tensor(expected))
    quarter = apply_rope(torch.tensor([[3.0, 4.0]]), torch.tensor([math.pi / 2]))
    torch.testing.assert_close(quarter, torch.tensor([[-4.0, 3.0]]))
    turn = rotation_matrix(math.pi / 2, 2)
    torch.testing.assert_close(turn, torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), atol=1e-7, rtol=0)
    assert alibi_bias(2, 3).tolist() == [
        [[-0.0, -1 / 16, -2 / 16], [-1 / 16, -0.0, -1 / 16], [-2 / 16, -1 / 16, -0.0]],
        [[-0.0, -1 / 256, -2 / 256], [-1 / 256, -0.0, -1 / 256], [-2 / 256, -1 / 256, -0.0]],
    ]


@settings(deadline=None)
@given(n=st.integers(1, 13), pairs=st.integers(1, 11), base=st.sampled_from([2.0, 100.0, 10000.0]))
def test_sinusoidal_against_loops(n, pairs, base):
    d = 2 * pairs
    PE = sinusoidal_encoding(n, d, base)
    assert PE.shape == (n, d)
    for t in range(n):
        for i in range(pairs):
            angle = t * base ** (-2 * i / d)
            assert abs(float(PE[t, 2 * i]) - math.sin(angle)) < 1e-6
            assert abs(float(PE[t, 2 * i + 1]) - math.cos(angle)) < 1e-6


@pytest.mark.parametrize("k", [0, 1, 7, -5, 503, 2.5])
@pytest.mark.parametrize(("d", "base"), [(2, 10000.0), (10, 10000.0), (64, 10000.0), (6, 50.0)])
def test_the_rotation_leads_from_t_to_t_plus_k(float64, k, d, base):
    """PE(t + k) = R(k) PE(t), to 1e-10 in float64."""
    R = rotation_matrix(k, d, base)
    t = torch.arange(1000)
    angles = torch.stack([t, t + k])[..., None] * base ** (-2 * torch.arange(d // 2) / d)
    now, later = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    torch.testing.assert_close(sinusoidal_encoding(1000, d, base), now, rtol=0, atol=1e-10)
    torch.testing.assert_close(now @ R.T, later, rtol=0, atol=1e-10)


def test_rotations_form_a_group(float64):
    R = {k: rotation_matrix(k, 10) for k in (-7, -3, 0, 3, 4, 7)}
    torch.testing.assert_close(R[3] @ R[4], R[7], rtol=0, atol=1e-12)
    torch.testing.assert_close(R[7].T, R[-7], rtol=0, atol=1e-12)
    torch.testing.assert_close(R[3] @ R[-3], torch.eye(10), rtol=0, atol=1e-12)
    assert torch.equal(R[0], torch.eye(10))
    assert torch.linalg.det(R[3]).isclose(torch.tensor(1.0))


def test_dot_product_of_two_places_depends_on_their_distance(float64):
    PE = sinusoidal_encoding(53, 14)
    G = PE @ PE.T
    for k in range(-50, 51):
        assert (G.diagonal(k) - G.diagonal(k)[0]).abs().max() < 1e-10
    torch.testing.assert_close(G.diagonal(), torch.full((53,), 7.0))


@settings(deadline=None)
@given(
    m=st.integers(-500, 500),
    n=st.integers(-500, 500),
    shift=st.integers(-5000, 5000),
    pairs=st.integers(1, 9),
)
def test_rope_scores_depend_on_the_distance_alone(m, n, shift, pairs):
    """To 1e-10 in float64, for any two places and any shift of both."""
    q, k = normal(1, 2 * pairs, seed=1), normal(1, 2 * pairs, seed=2)

    def score(at_q, at_k):
        query, key = apply_rope(q, torch.tensor([at_q])), apply_rope(k, torch.tensor([at_k]))
        return float(attention_scores(query, key))

    assert abs(score(m, n) - score(m + shift, n + shift)) < 1e-10
    assert abs(score(m, n) - score(m - n, 0)) < 1e-10


def test_rope_turns_by_the_rotation_matrix_as_rows(float64):
    x, positions = normal(3, 7, 10), torch.tensor([4, 0, -3, 11, 2, 500, 6])
    for base in (10000.0, 20.0):
        turned = apply_rope(x, positions, base)
        for t, position in enumerate(positions.tolist()):
            expected = x[:, t] @ rotation_matrix(position, 10, base)
            torch.testing.assert_close(turned[:, t], expected, rtol=0, atol=1e-10)


@given(n=st.integers(1, 7), pairs=st.integers(1, 5), batch=st.sampled_from([(), (2,), (3, 2)]))
@settings(deadline=None)
def test_rope_keeps_lengths_and_can_be_undone(n, pairs, batch):
    x, positions = normal(*batch, n, 2 * pairs), 3 * torch.arange(n) - 4
    turned = apply_rope(x, positions)
    assert turned.shape == x.shape
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(apply_rope(turned, -positions), x)


def test_rope_gradcheck():
    x, positions = normal(2, 3, 4).requires_grad_(), torch.tensor([0.5, -2.0, 7.0])
    assert torch.autograd.gradcheck(apply_rope, (x, positions))


def test_angles_are_exact_far_from_0():
    """float32 and float16 results are as good at position 100 000 as at 0."""
    x, far = normal(5, 6), torch.arange(5) + 100_000
    exact = apply_rope(x, far)
    torch.testing.assert_close(apply_rope(x.float(), far).double(), exact, rtol=0, atol=1e-6)
    torch.testing.assert_close(apply_rope(x.half(), far).double(), exact, rtol=0, atol=1e-2)
    last = sinusoidal_encoding(100_001, 2)[-1]
    expected = torch.tensor([math.sin(100_000), math.cos(100_000)])
    torch.testing.assert_close(last, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    x = normal(5, 4, dtype=dtype)
    assert apply_rope(x, torch.arange(5)).dtype == dtype
    assert apply_rope(x, torch.arange(5).double()).dtype == dtype
    assert LearnedPositions(7, 4).to(dtype)(x).dtype == dtype


def test_results_have_torchs_default_dtype():
    made = (lambda: sinusoidal_encoding(3, 4), lambda: rotation_matrix(3, 4),
            lambda: alibi_bias(2, 3))  # fmt: skip
    assert {make().dtype for make in made} == {torch.float32}
    torch.set_default_dtype(torch.float64)
    try:
        assert {make().dtype for make in made} == {torch.float64}
    finally:
        torch.set_default_dtype(torch.float32)


@given(n_heads=st.integers(1, 9), n=st.integers(1, 9))
def test_alibi_is_a_slope_times_the_distance(n_heads, n):
    bias = alibi_bias(n_heads, n)
    assert bias.shape == (n_heads, n, n)
    assert torch.equal(bias, bias.mT)
    assert (bias.diagonal(dim1=-2, dim2=-1) == 0).all()
    for h in range(n_heads):
        slope = 2 ** (-8 * (h + 1) / n_heads)
        assert float(bias[h, 0, -1]) == pytest.approx(-slope * (n - 1))


def test_alibi_weights_fall_by_the_same_factor_at_every_step():
    weights = alibi_bias(4, 11).double().softmax(-1)[:, 0]  # (4, 11), of the first place
    slopes = torch.tensor([1 / 4, 1 / 16, 1 / 64, 1 / 256], dtype=torch.float64)
    ratio = weights[:, 1:] / weights[:, :-1]
    torch.testing.assert_close(ratio, (-slopes).exp()[:, None].expand(4, 10))


def test_with_each_encoding_the_order_of_tokens_matters():
    torch.manual_seed(0)
    head, x, p = AttentionHead(6, 4).double(), normal(7, 6), torch.tensor([3, 0, 6, 4, 2, 1, 5])
    table = LearnedPositions(7, 6).double()
    table.table.data = normal(7, 6, seed=5)
    PE = sinusoidal_encoding(7, 6).double()

    def rotated(x):
        q, k = (apply_rope(W(x), torch.arange(7)) for W in (head.W_q, head.W_k))
        return attention_weights(q, k) @ head.W_v(x)

    def biased(x):
        scores = attention_scores(head.W_q(x), head.W_k(x)) / 2 + alibi_bias(1, 7)[0]
        return scores.softmax(-1) @ head.W_v(x)

    def differs(f):
        return (f(x[p]) - f(x)[p]).abs().max().item()

    assert differs(head) < 1e-12
    for f in (lambda x: head(x + PE), lambda x: head(table(x)), rotated, biased):
        assert differs(f) > 1e-4


def test_learned_positions_are_rows_of_a_table():
    torch.manual_seed(1)
    module = LearnedPositions(5, 3)
    assert [tuple(p.shape) for p in module.parameters()] == [(5, 3)]
    x = normal(2, 4, 3, dtype=torch.float32)
    torch.testing.assert_close(module(x) - x, module.table[:4].expand(2, 4, 3))
    given_positions = torch.tensor([4, 0, 0, 2])
    torch.testing.assert_close(module(x, given_positions), x + module.table[given_positions])
    module(x).sum().backward()
    assert module.table.grad[:, 0].tolist() == [2, 2, 2, 2, 0]


def llama(**options):
    """A layer of Llama with random weights, its rotary embedding, and its config."""
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama import modeling_llama

    config = transformers.LlamaConfig(
        hidden_size=24,
        num_attention_heads=3,
        num_key_value_heads=3,
        max_position_embeddings=64,
        attn_implementation="eager",
        **options,
    )
    torch.manual_seed(3)
    layer = modeling_llama.LlamaAttention(config, layer_idx=0).double().eval()
    for parameter in layer.parameters():
        parameter.data = normal(*parameter.shape) / 3
    return modeling_llama, layer, config


def neighbours(x):
    """Llama pairs feature i with i + d/2; the same features in our order, 0 d/2 1 d/2+1 …"""
    half = x.shape[-1] // 2
    return x[..., torch.arange(2 * half).reshape(2, half).T.flatten()]


@pytest.mark.parametrize("theta", [10000.0, 500.0])
def test_rope_is_that_of_transformers(theta):
    """Angles to the float32 in which transformers computes them, rotation to 1e-10."""
    rope = {"rope_type": "default", "rope_theta": theta}
    modeling, _, config = llama(rope_parameters=rope)
    q, k, at = normal(1, 3, 7, 8, seed=4), normal(1, 3, 7, 8, seed=5), torch.arange(7) + 11
    cos, sin = modeling.LlamaRotaryEmbedding(config)(q, at[None])
    library_turned = modeling.apply_rotary_pos_emb(q, k, cos, sin)
    for vectors, library_vectors in zip((q, k), library_turned, strict=True):
        turned = apply_rope(neighbours(vectors), at, theta)
        torch.testing.assert_close(turned, neighbours(library_vectors), rtol=0, atol=1e-5)

    angles = (at[:, None] * theta ** (-torch.arange(4).double() / 4)).repeat(1, 2)[None]
    exactly = modeling.apply_rotary_pos_emb(q, k, angles.cos(), angles.sin())
    for vectors, library_vectors in zip((q, k), exactly, strict=True):
        turned = apply_rope(neighbours(vectors), at, theta)
        torch.testing.assert_close(turned, neighbours(library_vectors), rtol=0, atol=1e-10)


def test_attention_with_rope_is_a_layer_of_llama():
    modeling, layer, config = llama()
    x, at = normal(2, 7, 24), torch.arange(7)
    embeddings = modeling.LlamaRotaryEmbedding(config)(x, at[None])
    expected, maps = layer(x, position_embeddings=embeddings, attention_mask=None)

    q, k, v = (
        (x @ W.weight.T).unflatten(-1, (3, 8)).transpose(1, 2)
        for W in (layer.q_proj, layer.k_proj, layer.v_proj)
    )  # each (b, h, n, d_head)
    weights = attention_weights(apply_rope(neighbours(q), at), apply_rope(neighbours(k), at))
    output = (weights @ v).transpose(1, 2).flatten(-2) @ layer.o_proj.weight.T
    torch.testing.assert_close(weights, maps, rtol=0, atol=1e-5)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


X = torch.ones(5, 4)
POSITIONS = torch.arange(5)


test_bad_input_is_refused = refused(
    [
        (lambda: sinusoidal_encoding(5, 7), "d: expected an even number", "got 7"),
        (lambda: sinusoidal_encoding(0, 4), "n: expected a whole number of at least 1", "got 0"),
        (lambda: sinusoidal_encoding(5, 0), "d: expected a whole number of at least 1", "got 0"),
        (lambda: sinusoidal_encoding(5.0, 4), "n: expected a whole number", "5.0"),
        (lambda: sinusoidal_encoding(5, 4, 0.0), "base: expected a finite number above 0", "0.0"),
        (lambda: sinusoidal_encoding(5, 4, math.inf), "base: expected a finite number", "inf"),
        (lambda: rotation_matrix(2, 5), "d: expected an even number", "got 5"),
        (lambda: rotation_matrix(math.nan, 4), "k: expected a finite number", "nan"),
        (lambda: rotation_matrix("2", 4), "k: expected a finite number", "'2'"),
        (lambda: rotation_matrix(True, 4), "k: expected a finite number", "True"),
        (lambda: rotation_matrix(2, 4, -1), "base: expected a finite number above 0", "-1"),
        (lambda: apply_rope(X[:, :3], POSITIONS), "d: expected an even number", "got 3"),
        (lambda: apply_rope(X[0], POSITIONS), r"x: expected shape \(\.\.\., n, d\)", r"\(4,\)"),
        (lambda: apply_rope(X.long(), POSITIONS), "x: expected a floating-point tensor", "int64"),
        (lambda: apply_rope(X.numpy(), POSITIONS), "x: expected a torch tensor", "ndarray"),
        (lambda: apply_rope(X[:0], POSITIONS[:0]), "x: expected at least one entry", r"\(0, 4\)"),
        (lambda: apply_rope(X, POSITIONS[:4]), "one for each of the 5 tokens", r"got \(4,\)"),
        (lambda: apply_rope(X, POSITIONS[None]), "one for each of the 5 tokens", r"got \(1, 5\)"),
        (lambda: apply_rope(X, range(5)), "positions: expected a torch tensor", "range"),
        (lambda: apply_rope(X, POSITIONS.bool()), "positions: expected real numbers", "torch.bool"),
        (lambda: apply_rope(X, POSITIONS / 0), "positions: expected finite numbers", "nan at 0"),
        (lambda: apply_rope(X, POSITIONS, 0), "base: expected a finite number above 0", "0"),
        (lambda: alibi_bias(0, 5), "n_heads: expected a whole number of at least 1", "got 0"),
        (lambda: alibi_bias(2, -1), "n: expected a whole number of at least 1", "got -1"),
        (lambda: LearnedPositions(0, 4), "max_length: expected a whole number", "got 0"),
        (lambda: LearnedPositions(4, 2.0), "d: expected a whole number", "2.0"),
        (lambda: LearnedPositions(4, 4)(X), "expected 0 to 3, the table has 4 rows", "got 4"),
        (lambda: LearnedPositions(9, 4)(X, POSITIONS - 1), "expected 0 to 8", "got -1"),
        (
            lambda: LearnedPositions(9, 4)(X, POSITIONS / 2),
            "expected whole numbers",
            "torch.float32",
        ),
        (
            lambda: LearnedPositions(9, 4)(X, POSITIONS[:2]),
            "one for each of the 5 tokens",
            r"\(2,\)",
        ),
        (lambda: LearnedPositions(9, 3)(X), "x: expected d = 3 features", r"\(5, 4\)"),
        (lambda: LearnedPositions(9, 4)(X.double()), "one dtype", "x of torch.float64, table of"),
    ]
)


# --- the checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sinusoidal_encoding", "rotation_matrix", "alibi_bias"])
def test_an_answer_in_float64_passes(name):
    """Nor is one that takes torch's default dtype to be something else."""
    exercise = exercises()[f"positions.{name}"]

    def wide(*args, **kwargs):
        return exercise.reference(*args, **kwargs).double()

    assert examine(exercise.target, wide, seed=0).passed
    assert not examine(exercise.target, lambda *a, **k: wide(*a, **k).half(), seed=0).passed


@pytest.mark.parametrize("seed", range(5))
def test_cases_use_positions_where_float32_angles_suffice(seed):
    """Only the criterion that asks for it, and whose text says so, needs angles in float64."""
    for _, case, _ in draw(exercises()["positions.sinusoidal_encoding"], seed):
        assert case.args[0] <= 40
    for _, case, _ in draw(exercises()["positions.rotation_matrix"], seed):
        assert abs(case.args[0]) <= 40
    for criterion, case, _ in draw(exercises()["positions.apply_rope"], seed):
        if not criterion.name.startswith("angles in float64"):
            assert case.args[0].dtype == torch.float32
            assert case.args[1].abs().max() <= 40


def test_rope_in_float32_loses_the_precision_point_alone():
    exercise = exercises()["positions.apply_rope"]
    (loose,) = (m for m in exercise.mistakes if m.name == "angles in float32")
    verdict = examine(exercise.target, loose.wrong, seed=0)
    assert verdict.possible - verdict.earned == 1
