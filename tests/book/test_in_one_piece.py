"""Each chapter's listing *in one piece*: it runs alone, and computes what the package does."""

from __future__ import annotations

import ast
import contextlib
import io
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import course as settings
import numpy as np
import pytest
import torch
from docutils.nodes import make_id

from attncourse import (
    circuits,
    cross_attention,
    gpt,
    interpret,
    kqv,
    llama,
    lookup,
    masking,
    mixing,
    multihead,
    positions,
    scaling,
    scoring,
    self_attention,
    sequences,
    serving,
    today,
    tokens,
    transformer,
    vision,
)
from attncourse.checks import examine, exercises
from attncourse.grading.results.similar import listing_cell
from helpers.page_numbers import numbers_of
from helpers.project import ROOT

CHAPTERS = {chapter.stem: chapter for chapter in settings.load(ROOT).chapters}
LINES, COLUMNS = range(10, 61), 72
NUMBERS_LISTED = r"((?:,? (?:and )?[\d.]+(?: to [\d.]+)?)+)"
ANSWERS, IDEAS = (
    rf"answers? to exercises?{NUMBERS_LISTED}",
    rf"the idea of(?: exercises?)?{NUMBERS_LISTED}",
)
RNG = np.random.default_rng(5)


class Piece(NamedTuple):
    """An expression of the listing's names and of what is given, and what it must come to."""

    expression: str
    names: dict[str, Any]
    expected: Callable[[], Any]


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


X, Y, A = numbers(5, 3), numbers(7, 3), np.abs(numbers(4, 5))
Q, K, V, ys = numbers(2, 3), numbers(7, 3), numbers(7, 2), numbers(7)
IDS, TABLE, ZEROS = np.array([[3, 0, 3], [1, 2, 4]]), numbers(5, 3), np.zeros((1, 3))
IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(5))
MAPS = torch.rand(3, 7, 7, generator=torch.Generator().manual_seed(6))
PATTERN = interpret.previous_token_pattern(7)
TILED = torch.randn(3, 11, 5, generator=torch.Generator().manual_seed(7))
QUOTED_TEXT = "It's 3.14, isn't it?"
HEADS = multihead.MultiHeadAttention(12, 3)
WIDE = torch.from_numpy(numbers(2, 5, 12)).float()
LOGITS = torch.from_numpy(numbers(2, 4, 7)).float()
SEEN_TOKENS = torch.from_numpy(RNG.random((2, 4, 7)) < 0.5)
SEEN_TOKENS[0, 1] = False  # a query without a key
PLACES = torch.tensor([0, 3, 11, 40, 5])


def random_tensor(*shape: int) -> torch.Tensor:
    return torch.from_numpy(numbers(*shape)).float()


def randomised(module: torch.nn.Module) -> torch.nn.Module:
    """A module whose weights are of order one, to be copied into the listing's own."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(random_tensor(*parameter.shape))
    return module


def with_state(call: str) -> str:
    """An expression: a module of the listing, made by a call, with the given state in it."""
    return f"[made := {call}, made.load_state_dict(state)][0]"


BATCH, OTHERS = random_tensor(2, 5, 3), random_tensor(2, 7, 4)
MASK = torch.from_numpy(RNG.random((5, 7)) < 0.6)
MASK[3] = False  # a query without a key
HEAD, CROSS = (
    randomised(kqv.AttentionHead(3, 2, 4)),
    randomised(cross_attention.CrossAttention(3, 4, 2, 3)),
)
POOLING = randomised(cross_attention.AttentionPooling(3, 2))
BILINEAR, ADDITIVE = (
    randomised(scoring.BilinearScore(3, 4)),
    randomised(scoring.AdditiveScore(3, 4, 6)),
)
SCORES = random_tensor(2, 5, 7)
WEIGHTS = torch.from_numpy(RNG.dirichlet(np.ones(5), size=3)).float()
NORMED = BATCH, random_tensor(2, 7, 3), random_tensor(3), random_tensor(3)
ABSORBED = (
    random_tensor(2, 4, 5, 3),
    random_tensor(2, 4, 5, 2),
    random_tensor(2, 7, 6),
    random_tensor(2, 7, 2),
    random_tensor(4, 6, 3),
)
MEMORY = random_tensor(2, 5, 4)
KINDS = ("full", "window", "latent", "state")
CACHE_SIZES = {
    "n_kv_heads": 2,
    "d_head": 4,
    "window": 30,
    "d_latent": 6,
    "d_turned": 2,
    "d_state": 20,
}
CONFIGS = [{"layers": [kind], **CACHE_SIZES} for kind in KINDS]

# What to compare, by chapter.
PIECES: dict[str, list[Piece]] = {
    "tokens": [
        Piece("tokenize(said)", {"said": QUOTED_TEXT}, lambda: tokens.tokenize(QUOTED_TEXT)),
        Piece(
            "[one_hot(ids, 5), embed(ids, table)]",
            {"ids": IDS, "table": TABLE},
            lambda: [tokens.one_hot(IDS, 5), tokens.embed(IDS, TABLE)],
        ),
        Piece(
            "[cosine_similarity(a, b), cosine_similarity(z, a)]",
            {"a": X, "b": Y, "z": ZEROS},
            lambda: [tokens.cosine_similarity(X, Y), tokens.cosine_similarity(ZEROS, X)],
        ),
    ],
    "mixing": [
        Piece(
            "[mix(w, x), normalize_rows(w)]",
            {"w": A, "x": X},
            lambda: [mixing.mix(A, X), mixing.normalize_rows(A)],
        ),
        Piece(
            "[f for f in (uniform_weights(7), causal_mean_weights(7), window_weights(7, 3))]",
            {},
            lambda: [
                mixing.uniform_weights(7),
                mixing.causal_mean_weights(7),
                mixing.window_weights(7, 3),
            ],
        ),
        Piece(
            "[is_row_stochastic(w), is_row_stochastic(w / w.sum(-1, keepdims=True))]",
            {"w": A},
            lambda: [False, True],
        ),
    ],
    "lookup": [
        Piece(
            "[softmax(1e4 * x, 0, 7.0), softmax(x)]",
            {"x": X},
            lambda: [lookup.softmax(1e4 * X, 0, 7.0), lookup.softmax(X)],
        ),
        Piece(
            "[soft_lookup(q, k, v, 0.5), kernel_regression(q[0], k[:, 0], y, 0.3)]",
            {"q": Q, "k": K, "v": V, "y": ys},
            lambda: [
                lookup.soft_lookup(Q, K, V, 0.5),
                lookup.kernel_regression(Q[0], K[:, 0], ys, 0.3),
            ],
        ),
    ],
    "self_attention": [
        Piece(
            "[attention_weights(x), self_attention(x)]",
            {"x": X},
            lambda: [self_attention.attention_weights(X), self_attention.self_attention(X)],
        ),
        Piece(
            "[is_permutation_equivariant(f, x) for f in (self_attention, lambda x: x.cumsum(0))]",
            {"x": X},
            lambda: [True, False],
        ),
    ],
    "interpret": [
        Piece(
            "head_scores(maps, pattern)",
            {"maps": MAPS, "pattern": PATTERN},
            lambda: interpret.head_scores(MAPS[None], PATTERN)[0],
        ),
        Piece(  # what each head adds is all that there is
            "read_with(tokens, W, 2)[1] - sum(read_with(tokens, W, 2, [k])[1] for k in (0, 1))",
            {},
            lambda: torch.zeros(6, 8),
        ),
    ],
    "vision": [
        Piece(
            "patchify(images, 2)",
            {"images": IMAGES},
            lambda: vision.patchify(IMAGES, 2),
        ),
        Piece(
            "net.embed(some)[:, 1:] - net.positions[:, 1:] - net.project(patchify(some, 2))",
            {},
            lambda: torch.zeros(64, 16, 32),
        ),
    ],
    "sequences": [
        Piece(
            "[encode_cdr3(loop, 15) for loop in loops]",
            {"loops": ["CASSIRSSYEQYF", "casf"]},
            lambda: [sequences.encode_cdr3(loop, 15) for loop in ("CASSIRSSYEQYF", "casf")],
        ),
        Piece("[looked.sum(-1), looked[0, 8:]]", {}, lambda: [np.ones(4), np.zeros(1)]),
    ],
    "efficient": [
        Piece(
            "[tiled_attention(*qkv, block=4), tiled_attention(*qkv)]",
            {"qkv": TILED},
            lambda: [kqv.scaled_dot_product_attention(*TILED)] * 2,
        ),
    ],
    "multihead": [
        Piece(
            "[(m := MultiHeadAttention(12, 3)).load_state_dict(state) and m(x, mask=mask), "
            "m.weights(x)]",
            {"state": HEADS.state_dict(), "x": WIDE, "mask": MASK[:, :5]},
            lambda: [HEADS(WIDE, mask=MASK[:, :5]), HEADS.weights(WIDE)],
        ),
        Piece(
            "[split_heads(x, 3), merge_heads(split_heads(x, 3))]",
            {"x": WIDE},
            lambda: [multihead.split_heads(WIDE, 3), WIDE],
        ),
    ],
    "masking": [
        Piece(
            "[causal_mask(5), causal_mask(2, 7), padding_mask([3, 7], 7), "
            "sliding_window_mask(7, 3), sliding_window_mask(7, 2, causal=True)]",
            {},
            lambda: [
                masking.causal_mask(5),
                masking.causal_mask(2, 7),
                masking.padding_mask([3, 7], 7),
                masking.sliding_window_mask(7, 3),
                masking.sliding_window_mask(7, 2, causal=True),
            ],
        ),
        Piece(
            "masked_softmax(scores, mask)",
            {"scores": LOGITS, "mask": SEEN_TOKENS},
            lambda: masking.masked_softmax(LOGITS, SEEN_TOKENS),
        ),
        Piece(
            "[leak(f, x, causal_mask(5)) "
            "for f in (lambda x: x.cumsum(0), lambda x: x - x.mean(0))]",
            {"x": WIDE[0]},
            lambda: [0.0, 0.2],
        ),
    ],
    "positions": [
        Piece(
            "[sinusoidal_encoding(50, 8), rotation_matrix(-3, 8), alibi_bias(4, 5)]",
            {},
            lambda: [
                positions.sinusoidal_encoding(50, 8),
                positions.rotation_matrix(-3, 8),
                positions.alibi_bias(4, 5),
            ],
        ),
        Piece(
            "apply_rope(x, places)",
            {"x": WIDE, "places": PLACES},
            lambda: positions.apply_rope(WIDE, PLACES),
        ),
    ],
    "kqv": [
        Piece(
            "[project(x, w), attention_scores(x, x)]",
            {"x": BATCH, "w": OTHERS[0, :3]},
            lambda: [
                kqv.project(BATCH, OTHERS[0, :3]),
                kqv.attention_scores(BATCH, BATCH),
            ],
        ),
        Piece(
            "[scaled_dot_product_attention(x, x, v, mask) for mask in (None, m)]",
            {"x": BATCH, "v": OTHERS[:, :5], "m": MASK[:, :5]},
            lambda: [
                kqv.scaled_dot_product_attention(BATCH, BATCH, OTHERS[:, :5], mask)
                for mask in (None, MASK[:, :5])
            ],
        ),
        Piece(
            f"{with_state('AttentionHead(3, 2, 4)')}(x, m)",
            {"x": BATCH, "m": MASK[:, :5], "state": HEAD.state_dict()},
            lambda: HEAD(BATCH, MASK[:, :5]),
        ),
    ],
    "scoring": [
        Piece(
            "[dot_score(x, x), attend(s, v), attend(s, v, m)]",
            {"x": BATCH, "s": SCORES, "v": OTHERS, "m": MASK},
            lambda: [
                scoring.dot_score(BATCH, BATCH),
                scoring.attend(SCORES, OTHERS),
                scoring.attend(SCORES, OTHERS, MASK),
            ],
        ),
        Piece(
            f"{with_state('BilinearScore(3, 4)')}(x, y)",
            {"x": BATCH, "y": OTHERS, "state": BILINEAR.state_dict()},
            lambda: BILINEAR(BATCH, OTHERS),
        ),
        Piece(
            f"{with_state('AdditiveScore(3, 4, 6)')}(x, y)",
            {"x": BATCH, "y": OTHERS, "state": ADDITIVE.state_dict()},
            lambda: ADDITIVE(BATCH, OTHERS),
        ),
        Piece(
            "BilinearScore(300, 200).W.std() * 60_000**0.5 > 0.9",
            {},
            lambda: True,
        ),
    ],
    "scaling": [
        Piece(
            "[scale_scores(x, 9), attention_entropy(p), softmax_jacobian(p)]",
            {"x": BATCH, "p": WEIGHTS},
            lambda: [
                scaling.scale_scores(BATCH, 9),
                scaling.attention_entropy(WEIGHTS),
                scaling.softmax_jacobian(WEIGHTS),
            ],
        ),
        Piece("abs(score_variance(16, 20_000, 3) / 16 - 1) < 0.05", {}, lambda: True),
    ],
    "cross_attention": [
        Piece(
            f"[{with_state('CrossAttention(3, 4, 2, 3)')}(x, y, mask) for mask in (None, m)]",
            {"x": BATCH, "y": OTHERS, "m": MASK, "state": CROSS.state_dict()},
            lambda: [CROSS(BATCH, OTHERS, mask) for mask in (None, MASK)],
        ),
        Piece(
            f"[{with_state('AttentionPooling(3, 2)')}(x, mask) for mask in (None, m)]",
            {"x": BATCH, "m": MASK[:2, :5], "state": POOLING.state_dict()},
            lambda: [POOLING(BATCH, mask) for mask in (None, MASK[:2, :5])],
        ),
    ],
}

torch.manual_seed(0)
ROWS = torch.randn(2, 5, 12)
CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()
BLOCK, LLAMA = transformer.EncoderBlock(12, 3), llama.LlamaBlock(12, 6, 2, 7, 50.0)
MODEL = gpt.GPT(gpt.GPTConfig(11, 7, d_model=12, n_heads=3)).eval()
for parameter in (*BLOCK.parameters(), *LLAMA.parameters(), *MODEL.parameters()):
    torch.nn.init.normal_(parameter, std=0.4)
# Drafts of which each guess is kept or refused for certain, and one token alone is left to draw.
DRAFTS = [torch.tensor(ids, dtype=torch.long) for ids in ([0, 1], [0, 2], [1], [])]
CERTAIN_DRAFT = (
    torch.tensor([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0]]),
    torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
)
STORY = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def state(module: torch.nn.Module, **names: str) -> dict[str, torch.Tensor]:
    """Return a module's state under the names that the listing uses."""
    names = {"attention.": "", "feed_forward.": "", **names}
    tensors = {}
    for name, tensor in module.state_dict().items():
        for old, new in names.items():
            name = name.replace(old, new)
        tensors[name] = tensor
    return tensors


def gpt_state() -> dict[str, torch.Tensor]:
    """Return a GPT's state under the listing's names: W_q, W_k and W_v are one matrix there."""
    tensors = state(MODEL, blocks="layers", gain="weight")
    for i in range(2):
        for kind in ("weight", "bias"):
            parts = [tensors.pop(f"layers.{i}.W_{letter}.{kind}") for letter in "qkv"]
            tensors[f"layers.{i}.W_qkv.{kind}"] = torch.cat(parts)
    table = tensors.pop("positions.table")
    tensors |= {f"layers.2.{kind}": tensors.pop(f"norm.{kind}") for kind in ("weight", "bias")}
    del tensors["out.weight"]  # the table again
    return tensors | {"positions.weight": table}


PIECES |= {
    "transformer": [
        Piece(
            "[layer_norm(x), layer_norm(x, g, g, 0.3)]",
            {"x": ROWS, "g": ROWS[0, 0]},
            lambda: [
                transformer.layer_norm(ROWS),
                transformer.layer_norm(ROWS, ROWS[0, 0], ROWS[0, 0], 0.3),
            ],
        ),
        Piece(
            "[(b := EncoderBlock(12, 3)).load_state_dict(s) and b(x), b(x, mask)]",
            {"s": BLOCK.state_dict(), "x": ROWS, "mask": CAUSAL},
            lambda: [BLOCK(ROWS), BLOCK(ROWS, CAUSAL)],
        ),
    ],
    "gpt": [
        Piece(
            "[(m := GPT(11, 7, 12, 3)).load_state_dict(s) and m(x), next_token_loss(m(x), x)]",
            {"s": gpt_state(), "x": STORY},
            lambda: [MODEL(STORY), gpt.next_token_loss(MODEL(STORY), STORY)],
        ),
        Piece(  # with the same draws
            "(m := GPT(11, 7, 12, 3)).load_state_dict(s) and torch.manual_seed(4) "
            "and generate(m, x, 9, draw)",
            {"s": gpt_state(), "x": STORY},
            lambda: torch.manual_seed(4) and gpt.generate(MODEL, STORY, 9, gpt.sample_token),
        ),
    ],
    "llama": [
        Piece(
            "[rms_norm(x), rms_norm(x, g, 0.3)]",
            {"x": ROWS, "g": ROWS[0, 0]},
            lambda: [llama.rms_norm(ROWS), llama.rms_norm(ROWS, ROWS[0, 0], 0.3)],
        ),
        Piece(
            "(b := LlamaBlock(12, 6, 2, 7, 50.0)).load_state_dict(s) and b(x)",
            {"s": LLAMA.state_dict(), "x": ROWS},
            lambda: LLAMA(ROWS),
        ),
    ],
    "circuits": [
        Piece(
            "[sink_mask(7, 2, 1), sink_mask(3, 9, 0)]",
            {},
            lambda: [circuits.sink_mask(7, 2, 1), circuits.sink_mask(3, 9, 0)],
        ),
        Piece(
            "[cut_edges(s, [(0, 1), (4, 2)]), cut_edges(s[..., :1], [(0, 0)])]",
            {"s": ROWS},
            lambda: [
                circuits.cut_edges(ROWS, [(0, 1), (4, 2)]),
                circuits.cut_edges(ROWS[..., :1], [(0, 0)]),
            ],
        ),
        Piece(
            "logit_lens(x, g, t)",
            {"x": ROWS, "g": ROWS[0, 0], "t": ROWS[1]},
            lambda: circuits.logit_lens(ROWS, ROWS[0, 0], ROWS[1]),
        ),
        Piece(
            "[torch.allclose(patched(toy, one, two, 2, 2)[2], toy(one)[2]),"
            " torch.allclose(patched(toy, one, two, 0, 0), toy(two))]",
            {},
            lambda: [True, True],
        ),
    ],
    "serving": [
        Piece(
            "[pad_left([[5, 6, 7], [8]], 0), pad_left([STORY[0], STORY[1, 2:], [0]], 9)]",
            {"STORY": STORY},
            lambda: [
                serving.pad_left([[5, 6, 7], [8]], 0),
                serving.pad_left([STORY[0], STORY[1, 2:], [0]], 9),
            ],
        ),
        Piece(
            "[quantize(x, 3, 4), dequantize(*quantize(x, 2, 6)), quantize(0 * x, 8, 12)]",
            {"x": ROWS},
            lambda: [
                serving.quantize(ROWS, 3, 4),
                serving.dequantize(*serving.quantize(ROWS, 2, 6)),
                serving.quantize(0 * ROWS, 8, 12),
            ],
        ),
        Piece(  # kept or refused for certain, and of what is left one token alone
            "[speculative_accept(d, q[:len(d)], p[:len(d) + 1], rng) for d in drafts]",
            {"drafts": DRAFTS, "q": CERTAIN_DRAFT[0], "p": CERTAIN_DRAFT[1]},
            lambda: [
                serving.speculative_accept(
                    d, CERTAIN_DRAFT[0][: len(d)], CERTAIN_DRAFT[1][: len(d) + 1], None
                )
                for d in DRAFTS
            ],
        ),
        Piece("((first / 2000) - p[0]).abs().max() < 0.04", {}, lambda: True),
        Piece(
            "[top_k_gate(x, k) for k in (1, 5, 12)] + [top_k_gate(0 * x, 2)]",
            {"x": ROWS},
            lambda: [
                *(serving.top_k_gate(ROWS, k) for k in (1, 5, 12)),
                serving.top_k_gate(0 * ROWS, 2),
            ],
        ),
    ],
    "today": [
        Piece(
            "normed_scores(*given)",
            {"given": NORMED},
            lambda: today.normed_scores(*NORMED),
        ),
        Piece(
            "sink_softmax(s, sink)",
            {"s": MAPS, "sink": MAPS[:, 0, 0]},
            lambda: today.sink_softmax(MAPS, MAPS[:, 0, 0]),
        ),
        Piece(
            "absorbed_scores(*given)",
            {"given": ABSORBED},
            lambda: today.absorbed_scores(*ABSORBED),
        ),
        Piece(
            "delta_rule(x, x / 4, y, b)",
            {"x": BATCH, "y": MEMORY, "b": MEMORY[..., 0].sigmoid()},
            lambda: today.delta_rule(BATCH, BATCH / 4, MEMORY, MEMORY[..., 0].sigmoid()),
        ),
        Piece(
            "[select_keys(s, 3, m), select_keys(0 * s, 2, m)]",
            {"s": SCORES, "m": MASK.expand(2, 5, 7)},
            lambda: [
                today.select_keys(SCORES, 3, MASK),
                today.select_keys(0 * SCORES, 2, MASK),
            ],
        ),
        Piece(
            "[cache_bytes_of(c, n, 4) for c in configs for n in (1, 30, 5000)]",
            {"configs": CONFIGS},
            lambda: [today.cache_bytes_of(c, n, 4) for c in CONFIGS for n in (1, 30, 5000)],
        ),
    ],
}

# What the empty process does: each listing, then its expressions, with no package to import. What
# any may import is imported once, before a process parts for each: that takes longer than they do.
RUN_SCRIPT = """
import io, os, pickle, sys, tempfile, traceback
import numpy, torch
sys.modules["attncourse"] = None


def run(code, asked):
    names, sys.stdout = {"__name__": "__main__"}, io.StringIO()
    exec(compile(code, "in one piece", "exec"), names)
    return sys.stdout.getvalue(), [eval(expression, names | given) for expression, given in asked]


for code, asked in pickle.load(sys.stdin.buffer):
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(tempfile.mkdtemp(dir="."))
        try:
            made = run(code, asked)
        except BaseException:
            made = traceback.format_exc()
        with open(writes, "wb") as told:
            told.write(pickle.dumps(made))
        os._exit(0)
    os.close(writes)
    with open(reads, "rb") as told:
        pickle.dump(told.read(), sys.stdout.buffer)
    os.waitpid(child, 0)
"""


def listing(stem: str) -> str:
    page = ROOT / f"{CHAPTERS[stem].page}.md"
    return listing_cell(page.read_text(encoding="utf-8"))


def run_alone(pieces: list[tuple[str, list[tuple[str, dict]]]], folder) -> Iterator[tuple | str]:
    """Return each listing's output and the values of its expressions, or its error."""
    process = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", RUN_SCRIPT],
        input=pickle.dumps(pieces),
        capture_output=True,
        cwd=folder,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    output = io.BytesIO(process.stdout)
    return (pickle.loads(pickle.load(output)) for _ in pieces)


@pytest.fixture(scope="module")
def results_by_chapter(tmp_path_factory) -> dict[str, tuple | str]:
    """Return each chapter's output and values, or its error, by stem."""
    pieces = [(listing(stem), [piece[:2] for piece in PIECES[stem]]) for stem in CHAPTERS]
    return dict(zip(CHAPTERS, run_alone(pieces, tmp_path_factory.mktemp("alone")), strict=True))


def promised_numbers(code: str) -> tuple[set[str], set[str]]:
    """Return the exercises' numbers that a listing's first lines promise to answer or outline."""
    words = " ".join(re.match(r"(?:# .*\n?)*", code)[0].replace("#", " ").split())
    return tuple(
        {n for part in re.findall(pattern, words) for n in numbers_in(part)}
        for pattern in (ANSWERS, IDEAS)
    )


def numbers_in(words: str) -> Iterator[str]:
    """Return the numbers in "1.1 to 1.3 and 1.5", with those between."""
    for first, last in re.findall(r"(\d+\.\d+)(?: to \d+\.(\d+))?", words):
        chapter, number = first.split(".")
        yield from (f"{chapter}.{n}" for n in range(int(number), int(last or number) + 1))


def exercises_answered(code: str, stem: str, folder: Path) -> tuple[set[str], set[str]]:
    """Return the exercises that a listing solves, and those it defines without solving them."""
    file = folder / f"{stem}.py"
    file.write_text(code, encoding="utf-8")  # a check reads the source
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, file, "exec"), names)
    solved, others = set(), set()
    for name, number in numbers_of(CHAPTERS[stem]).items():
        if name in names:
            verdicts = [
                examine(f"{stem}.{name}", names[name], seed, explain=False) for seed in (1, 2)
            ]
            (solved if all(v.passed for v in verdicts) else others).add(number)
    return solved, others


def assert_same(computed: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert len(computed) == len(expected)
        for part, expected_part in zip(computed, expected, strict=True):
            assert_same(part, expected_part)
    elif isinstance(expected, str | bool):
        assert computed == expected
    else:
        computed, expected = (
            x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
            for x in (computed, expected)
        )
        assert computed.shape == expected.shape
        np.testing.assert_allclose(computed, expected, atol=1e-5)


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_chapters_listing_runs_alone(stem, results_by_chapter):
    assert not isinstance(results_by_chapter[stem], str), results_by_chapter[stem]
    printed, results = results_by_chapter[stem]
    assert printed.strip(), "the listing ends with a call, and shows what it returns"
    for piece, result in zip(PIECES[stem], results, strict=True):
        assert_same(result, piece.expected())


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_listing_can_be_read_and_pasted(stem):
    page = (ROOT / f"{CHAPTERS[stem].page}.md").read_text(encoding="utf-8")
    label = f"\n({stem}-in-one-piece)=\n```{{code-cell}} ipython3\n---\nmystnb:\n"
    assert label + '  code_prompt_show: "In one piece, to paste"\n' in page
    code = listing(stem)
    lines = code.splitlines()
    assert len([line for line in lines if line.strip()]) in LINES
    assert max(map(len, lines)) <= COLUMNS
    assert any(promised_numbers("\n".join(lines[:4])))  # a reader is told before reading
    assert "(n" in code or "(b" in code  # shapes
    imports = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Import | ast.ImportFrom)]
    roots = {(n.module if isinstance(n, ast.ImportFrom) else n.names[0].name) for n in imports}
    assert {root.partition(".")[0] for root in roots} <= {
        "numpy",
        "torch",
        *sys.stdlib_module_names,
    }
    defined = {getattr(node, "name", "") for node in ast.parse(code).body}
    assert defined & {e.name for e in exercises().values() if e.stem == stem}


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_listing_has_the_answers_that_it_promises(stem, tmp_path):
    """A function with an exercise's name gets full points, or is called the idea of it."""
    assert exercises_answered(listing(stem), stem, tmp_path) == promised_numbers(listing(stem))


def test_an_answer_that_loses_a_point_counts_as_an_idea(tmp_path):
    code = "import numpy as np\n\n\ndef mix(A, X):\n    return np.dot(A, X)\n"
    assert exercises_answered(code, "mixing", tmp_path) == (set(), {"2.1"})
    assert exercises_answered(code.replace("np.dot(A, X)", "A @ X"), "mixing", tmp_path) == (
        {"2.1"},
        set(),
    )
    assert promised_numbers(
        "# One.\n# It holds answers to exercises 1.1 to 1.3 and 1.5, and the\n# idea of"
        " 1.4: try these first.\nx = 2.1\n"
    ) == ({"1.1", "1.2", "1.3", "1.5"}, {"1.4"})
    assert promised_numbers("# It holds the idea of exercise 3.2: try it.") == (set(), {"3.2"})


@pytest.mark.parametrize("stem", CHAPTERS)
def test_the_readme_links_to_the_listings(stem):
    """By the name that docutils makes of the label."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    place = make_id(f"{stem}-in-one-piece")
    assert f"/{CHAPTERS[stem].page}.html#{place})" in readme


def test_a_listing_cannot_import_the_package(tmp_path):
    away, failed, right = run_alone(
        [("import attncourse", []), ("x = 1", [("1 / 0", {})]), ("x = 1", [("x", {})])], tmp_path
    )
    assert "import of attncourse halted" in away
    assert "ZeroDivisionError" in failed
    assert right == ("", [1])


def test_a_different_result_fails():
    with pytest.raises(AssertionError):
        assert_same([np.ones(3), True], [np.ones(3), False])
    with pytest.raises(AssertionError):
        assert_same(np.ones(3), np.array([1, 1, 1.01]))
