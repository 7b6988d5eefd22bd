"""The place of a mistake that nobody foresaw: one change in the code that mends everything."""

import ast
import re
import resource
import textwrap
import time

import numpy as np
import pytest
import torch
from torch import nn

from attncourse.checks import examine, exercises
from attncourse.checks.explaining import repairs
from attncourse.checks.explaining.changes import Change, changes
from attncourse.checks.explaining.repairs import (
    AnswerSource,
    bounded_memory,
    find_repair,
    repair_in_words,
)
from attncourse.checks.judging import judge
from attncourse.checks.trying.trials import try_out
from attncourse.masking import causal_mask, sliding_window_mask
from attncourse.multihead import MultiHeadAttention
from attncourse.transformer import FeedForward, LayerNorm

EXERCISES = exercises()


def repair_of(target: str, answer, seed: int = 3):
    """Return the repair found in an answer's code, whatever else a check would say."""
    exercise = EXERCISES[target]
    return find_repair(exercise, answer, try_out(exercise, answer, seed), seed)


# --- each kind of change, in an answer that is wrong in one place --------------------------------


def another_axis(query, key, value, mask=None, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-2)
    return weights @ value


def axis_of_what_could_be_left_out(scores, mask):
    has_key = mask.any(dim=-2, keepdim=True)
    weights = scores.masked_fill(~mask & has_key, -torch.inf).softmax(-1)
    return weights.masked_fill(~mask, 0)


def another_truth(n, width, n_sinks):
    if width < 1 or n_sinks < 0:
        raise ValueError
    near = sliding_window_mask(n, width, causal=False)
    return near | (causal_mask(n) & (torch.arange(n) < n_sinks))


def another_operator(query, key, value, mask=None, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None and mask.all():
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def something_too_much(x, weight):
    product = x @ weight
    return product.clamp(min=-0.5)


def something_missing(query, key, value, mask=None, *, scale=None):
    root = query.shape[-1] ** 0.5
    scores = query @ key.mT / root if scale is None else query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(mask, -torch.inf)
    return scores.softmax(-1) @ value


def a_line_too_much(x, weight):
    product = x @ weight
    product[..., 0] = 0.25
    return product


def assigned_where_it_is_added(x, weight):
    out = torch.zeros(*x.shape[:-1], weight.shape[1], dtype=x.dtype)
    for a in range(weight.shape[0]):
        out[..., :] = x[..., a, None] * weight[a]
    return out


def capitals_of_sentences(text):
    return re.findall(r"\w+|[^\w\s]", text.capitalize())


ANSWERS = [
    (assigned_where_it_is_added, "kqv.project", "a wrong operator", "than `=` in `out[..., :] ="),
    (capitals_of_sentences, "tokens.tokenize", "a wrong function", "`capitalize`"),
    (another_axis, "kqv.scaled_dot_product_attention", "a wrong axis", "`-2`"),
    (axis_of_what_could_be_left_out, "masking.masked_softmax", "a wrong axis", "`-2`"),
    (another_truth, "circuits.sink_mask", "a wrong truth value", "`False`"),
    (something_too_much, "kqv.project", "a floor or a ceiling", "Without `clamp`"),
    (a_line_too_much, "kqv.project", "something too much", "Without `product[..., 0] = 0.25`"),
    (another_operator, "kqv.scaled_dot_product_attention", "in one place", "mask.all()"),
    (
        something_missing,
        "kqv.scaled_dot_product_attention",
        "something missing",
        "exchanged in `mask`",
    ),
]


@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        ("def f(x):\n    y = -x; return y", "Without `y = -x`, in the line `y = -x; return y`,"),
        ("def f(x):\n    if x:\n        x = 1\n    return x", "Without `if x: …` every result"),
        ("def f(x):\n    x += 1\n    return x", "Without `x += 1` every result"),
    ],
)
def test_a_statement_is_quoted_alone_and_in_one_line(code, phrase):
    """A line may hold several statements, and a statement several lines."""
    definition = ast.parse(code).body[0]
    source = AnswerSource(definition, code.splitlines(keepends=True), {})
    change = Change("something too much", "Without {}", definition.body[0], list)
    assert phrase in repair_in_words(source, (change,)).explanation


@pytest.mark.parametrize(
    ("answer", "target", "kind", "piece"), ANSWERS, ids=[a.__name__ for a, *_ in ANSWERS]
)
def test_the_place_of_a_mistake_is_found(answer, target, kind, piece):
    for seed in (0, 5):
        repair = repair_of(target, answer, seed)
        assert repair is not None
        assert kind in repair.name
        assert piece in repair.explanation
        assert "every result is right." in repair.explanation


def test_the_symptom_stands_before_the_repair():
    """A place does not say what came out; only a symptom of the result does."""
    explanation = judge(EXERCISES["kqv.project"], a_line_too_much, 3).diagnosis.explanation
    assert explanation.startswith(
        "The result is right but in the first column. Without `product[..., 0]"
    )
    bare = judge(EXERCISES["kqv.project"], something_too_much, 3).diagnosis.explanation
    assert bare.startswith("Without `clamp`")


def test_a_repair_is_shown_where_one_number_comes_back(tmp_path):
    text = """
        def attention_scores(query, key):
            scores = query @ key.mT
            out = torch.zeros_like(scores)
            for i in range(scores.shape[-2]):
                out[..., i, :] == scores[..., i, :]
            return out
    """
    answer = function_from_file(text, "attention_scores", tmp_path)
    explanation = judge(EXERCISES["kqv.attention_scores"], answer, 3).diagnosis.explanation
    assert explanation.startswith("The result is 0 everywhere")
    assert "not used at all? With" in explanation
    assert explanation.endswith("every result is right.")


def function_from_file(text: str, name: str, tmp_path):
    """Return a function defined in a file, as a notebook's cell is one."""
    file = tmp_path / "answer.py"
    file.write_text(textwrap.dedent(text))
    names = {"torch": torch, "np": np, "nn": nn, "MultiHeadAttention": MultiHeadAttention}
    names |= {"FeedForward": FeedForward, "LayerNorm": LayerNorm}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names[name]


CHANGES_OF_MEAN_WEIGHTS = [
    ("return np.tril(np.ones((n, n))) / np.arange(n)[:, None]", "missing", "np.arange(n)"),
    ("return np.triu(np.ones((n, n))) / np.arange(1, n + 1)[:, None]", "wrong function", "triu"),
    ("return np.tril(np.ones((n, n))) / np.arange(1, n)[:, None]", "missing", "`n`"),
    ("return np.tril(np.ones((n, n))) * np.arange(1, n + 1)[:, None]", "wrong operator", "*"),
    ("return np.tril(np.ones((n, n)), 1) / np.arange(1, n + 1)[:, None]", "number", "`1`"),
    ("A = np.tril(np.ones((n, n)))\n    return A / A.sum(axis=-1)", "missing", "A.sum(axis=-1)"),
    ("A = np.tril(np.ones((n, n)))\n    return A / A.sum(0, keepdims=True)", "number", "`0`"),
    (
        "A = np.ones((n, n))\n    B = A / A.sum(-1, keepdims=True)\n"
        "    A = np.tril(A)\n    return B",
        "two lines in the wrong order",
        "`B = A / A.sum(-1, keepdims=True)`",
    ),
    (
        "A = np.tril(np.ones((n, n)))\n    W = np.zeros((n, n), dtype=int)\n"
        "    W[:] = A / A.sum(-1, keepdims=True)\n    return W",
        "another dtype than what came in",
        "np.zeros((n, n), dtype=int)",
    ),
    (
        "A = np.ones((n, n))\n    return np.tril(A, 1) / np.tril(A, 1).sum(-1, keepdims=True)",
        "several places",
        "wherever `1` stands",
    ),
]


ATTEND_SOURCE = """
def attend(scores, values, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    {}
"""
CHANGES_WITH_A_HINT = [
    ("return scores.softmax(2) @ values", "axes counted from the front", "scores.softmax(2)"),
    ("return torch.softmax(scores, dim=1) @ values", "axes counted from the front", "dim=1"),
    (
        "e = (scores - scores.amax(-1, keepdim=True)).exp()\n"
        "    return e @ values / (e.sum(-1, keepdim=True) + 1e-6)",
        "a guard that shows in the result",
        "1e-6",
    ),
    (
        "e = (scores - scores.amax(-1, keepdim=True).clamp(min=-3.0)).exp()\n"
        "    return e / e.sum(-1, keepdim=True) @ values",
        "a floor or a ceiling that shows",
        "clamp(min=-3.0)",
    ),
    (
        "scores = scores.softmax(-1)\n    values = scores @ values\n"
        "    return values / scores.sum(-1, keepdim=True) + 0 * scores @ values",
        "a name is overwritten while its old value is needed",
        "values = scores @ values",
    ),
    (
        "e = (scores - scores.amax(-1, keepdim=True)).exp()\n"
        "    return (e @ values) * 2 / e.sum(-1, keepdim=True) + e.sum(-1, keepdim=True) / 2 + 3",
        "",
        "",
    ),
]


@pytest.mark.parametrize(
    ("body", "kind", "piece"), CHANGES_WITH_A_HINT, ids=[body for body, *_ in CHANGES_WITH_A_HINT]
)
def test_some_kinds_of_repairs_say_what_to_write(body, kind, piece, tmp_path):
    repair = repair_of(
        "scoring.attend", function_from_file(ATTEND_SOURCE.format(body), "attend", tmp_path)
    )
    assert (repair.name if repair else "") == kind
    if kind:
        assert piece in repair.explanation
        assert not repair.explanation.endswith("every result is right.")


@pytest.mark.parametrize(
    ("target", "body", "kind"),
    [
        ("scaling.scale_scores(scores, d_k)", "return scores / d_k ** 1 / 2", "brackets"),
        ("scaling.scale_scores(scores, d_k)", "return scores / (d_k ** 0.5 * 1) * 1", None),
        ("kqv.project(x, weight)", "return x * weight", "entries multiplied"),
        (
            "kqv.project(x, weight)",
            "return x @ weight.reshape(weight.shape[1], weight.shape[0]).mT",
            "reshaped where axes should be exchanged",
        ),
        ("self_attention.self_attention(X)", "return softmax(X * X) @ X", "entries multiplied"),
    ],
)
def test_brackets_products_and_reshapes_are_changed(target, body, kind, tmp_path):
    target, arguments = target.split("(")
    name = target.split(".")[1]
    answer = function_from_file(
        f"""
        def softmax(S):
            e = np.exp(S - S.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        def {name}({arguments}:
            {body}
        """,
        name,
        tmp_path,
    )
    if kind is None:
        assert examine(target, answer).passed
    else:
        assert repair_of(target, answer).name.startswith(kind)


@pytest.mark.parametrize(
    ("body", "kind", "piece"),
    CHANGES_OF_MEAN_WEIGHTS,
    ids=[body for body, *_ in CHANGES_OF_MEAN_WEIGHTS],
)
def test_each_kind_of_change_is_found(body, kind, piece, tmp_path):
    answer = function_from_file(
        f"def causal_mean_weights(n):\n    {body}\n", "causal_mean_weights", tmp_path
    )
    repair = repair_of("mixing.causal_mean_weights", answer)
    assert repair is not None
    assert kind in repair.name
    assert piece in repair.explanation


def test_an_array_changed_in_place_is_reported(tmp_path):
    answer = function_from_file(
        "def mix(A, X):\n    A *= 2\n    return A @ X / 2\n", "mix", tmp_path
    )
    repair = repair_of("mixing.mix", answer)
    assert repair.name == "an array is changed in place"
    assert "With a new array in place of `A *= 2`" in repair.explanation


def test_a_class_is_varied_too(tmp_path):
    text = """
        class FeedForward(nn.Module):
            def __init__(self, d_model, d_ff=None, bias=True, activation=nn.functional.gelu):
                super().__init__()
                d_ff = 4 * d_model if d_ff is None else d_ff
                self.activation = activation
                self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
                self.W_2 = nn.Linear(d_ff, d_model, bias=bias)

            def forward(self, x):
                return self.W_2(self.activation(self.W_1(x))).cumsum(-1)
    """
    reference = EXERCISES["transformer.FeedForward"].reference
    wrong = function_from_file(text, "FeedForward", tmp_path)
    repair = repair_of("transformer.FeedForward", wrong)
    assert repair is not None
    assert "`.cumsum(…)`" in repair.explanation
    assert reference is EXERCISES["transformer.FeedForward"].reference


# --- what is not told ----------------------------------------------------------------------------


def test_the_verdict_says_where_and_not_what():
    def project(x, weight):
        product = x @ weight
        return product.clamp(min=-0.5) + 0 * 3.25

    verdict = judge(EXERCISES["kqv.project"], project, seed=1)
    assert verdict.diagnosis.name == "a floor or a ceiling that shows"
    assert "Without `clamp` in `product.clamp(min=-0.5)`" in str(verdict)
    numbers = repair_of("kqv.scaled_dot_product_attention", another_axis)
    assert "-1" not in numbers.explanation


def test_two_mistakes_have_no_single_repair():
    def project(x, weight):
        product = (x @ weight).clamp(min=-0.5)
        return product.cumsum(-1).tanh()

    assert repair_of("kqv.project", project) is None


def test_code_wrong_only_by_its_surroundings_has_no_repair(tmp_path):
    halved = function_from_file(
        """
        def half(function):
            return lambda x, weight: function(x, weight) / 2

        @half
        def project(x, weight):
            return x @ weight
        """,
        "project",
        tmp_path,
    )
    assert repair_of("kqv.project", halved) is None
    shared_name_answer = function_from_file(
        """
        @torch.no_grad()
        def project(x, weight):
            return x @ weight
        """,
        "project",
        tmp_path,
    )
    assert repair_of("kqv.project", shared_name_answer) is None


@pytest.mark.parametrize("line", ["open('x.txt', 'w').close()", "import os", "eval('1')"])
def test_code_that_does_more_than_compute_is_not_varied(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"def project(x, weight):\n    {line}\n    return (x @ weight).tanh()\n"
    assert repair_of("kqv.project", function_from_file(text, "project", tmp_path)) is None


def test_answers_without_a_source_have_no_repair():
    def unwritten(x, weight):
        raise NotImplementedError()

    names: dict = {}
    exec("def project(x, weight): return (x @ weight).tanh()", names)
    assert repair_of("kqv.project", names["project"]) is None
    assert repair_of("kqv.project", torch.add) is None
    assert repair_of("kqv.project", unwritten) is None
    verdict = examine("kqv.project", unwritten)
    assert verdict.unwritten
    assert verdict.diagnosis is None


def test_answers_of_the_package_are_not_varied():
    wrong = EXERCISES["kqv.project"].mistakes[0].wrong
    assert repair_of("kqv.project", wrong) is None


# --- safely --------------------------------------------------------------------------------------


def test_variants_that_never_end_are_given_up(tmp_path):
    text = """
        def causal_mean_weights(n):
            A, i = np.zeros((n, n)), 0
            while i < n:
                A[i, : i + 1] = 1 / (i + 1)
                i += 1
            return A.round(1)
    """
    began = time.thread_time()
    repair_of(
        "mixing.causal_mean_weights", function_from_file(text, "causal_mean_weights", tmp_path)
    )
    assert time.thread_time() - began < 10


def test_variants_run_in_bounded_memory(monkeypatch):
    before = resource.getrlimit(resource.RLIMIT_AS)
    with bounded_memory() as bounded:
        assert bounded
        with pytest.raises(MemoryError):
            np.empty(2 * repairs.MAX_EXTRA_BYTES // 8)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert np.empty(2 * repairs.MAX_EXTRA_BYTES // 8).size
    monkeypatch.setattr(repairs, "resource", None)  # as on Windows
    assert repair_of("kqv.project", something_too_much) is None


def test_a_variant_that_fills_memory_is_given_up(monkeypatch):
    def filling(*_, **__):
        raise MemoryError

    monkeypatch.setattr(repairs, "problem_with", filling)
    before = resource.getrlimit(resource.RLIMIT_AS)
    assert repair_of("kqv.project", something_too_much) is None
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_changes_leave_the_tree_as_it_was():
    text = ast.parse(textwrap.dedent(ast.unparse(ast.parse(CODE_TO_VARY))))
    definition, before = text.body[0], ast.dump(text)
    seen = set()
    for change in changes(definition):
        with change.applied():
            seen.add(ast.dump(text))
        assert ast.dump(text) == before
    assert len(seen) > 100
    assert before not in seen


CODE_TO_VARY = """
def f(x, y=2, *, flag=True):
    total = x.sum(-1, keepdim=False)
    total *= y
    if flag and x.ndim > 1:
        total = total[..., 1:] - np.max(x @ x.T, axis=0)
    return -total if flag else total / 3.5
"""


def test_a_change_right_in_some_fresh_cases_mends_nothing(monkeypatch):
    assert repair_of("kqv.project", something_too_much) is not None
    tried = []

    def fresh(exercise, variant, seed):
        tried.append(seed)
        return iter(try_out(exercise, variant if seed == 4 else something_too_much, seed))

    monkeypatch.setattr(repairs, "trials_of", fresh)
    assert repair_of("kqv.project", something_too_much) is None
    assert {4, 5} <= set(tried)


def test_a_call_without_arguments_can_be_varied():
    """``np.sum()`` is wrong, and what is wrong is varied."""
    definition = ast.parse("def f(x, w):\n    return np.sum() + (x * w).sum(-1)").body[0]
    assert any("a matrix product" in change.words for change in changes(definition))


# --- two in one line, and an axis of length 1 ----------------------------------------------------


def test_two_mistakes_in_one_line_are_told_with_both_parts(tmp_path):
    text = """
        def window_weights(n, width):
            if width % 2 == 0:
                raise ValueError("odd")
            i = np.arange(n)
            near = abs(i[:, None] - i) < width // 1
            return near / near.sum(1, keepdims=True)
    """
    repair = repair_of(
        "mixing.window_weights", function_from_file(text, "window_weights", tmp_path)
    )
    assert repair.name == "two mistakes in one line"
    assert repair.explanation == (
        "With another number in place of `1` and with another comparison in "
        "`abs(i[:, None] - i) < width // 1` every result is right."
    )


TWO_MISTAKES_SOURCE = """
def attend(scores, values, mask=None):
    if mask is not None:
        scores[mask == False] = -torch.inf
    weights = scores.softmax({})
    return weights @ values
"""


def test_a_mask_as_an_index_is_shown_with_the_right_way(tmp_path):
    answer = function_from_file(TWO_MISTAKES_SOURCE.format(-1), "attend", tmp_path)
    repair = repair_of("scoring.attend", answer)
    assert repair.name == "a mask as an index"
    assert "`scores[mask == False] = -torch.inf`" in repair.explanation
    assert "masked_fill" in repair.explanation


def test_two_mistakes_in_two_places_are_told_with_both_lines(tmp_path):
    answer = function_from_file(TWO_MISTAKES_SOURCE.format("dim=-2"), "attend", tmp_path)
    repair = repair_of("scoring.attend", answer)
    assert repair.name == "two mistakes, in two places"
    first, second = repair.explanation.split(", and ")[:2]
    assert "softmax(dim=-2)" in first or "`-2`" in first
    assert "`scores[mask == False] = -torch.inf`" in second
    assert repair.explanation.count("every result is right.") == 1


DECODER_SOURCE = """
class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))
        self.pre_norm, self.dropout = pre_norm, nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.pre_norm:
            x = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask))
            x = x + self.dropout(self.cross_attention(self.norm_2(x), memory))
            return {}self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, mask=memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))
"""


@pytest.mark.parametrize("forgotten", [False, True])
def test_an_argument_that_another_call_has_can_be_missing(forgotten, tmp_path):
    answer = function_from_file(
        DECODER_SOURCE.format("" if forgotten else "x + "), "DecoderBlock", tmp_path
    )
    repair = repair_of("transformer.DecoderBlock", answer)
    assert "`mask`, which another call has, in" in repair.explanation
    assert ("a name added to `self.dropout(" in repair.explanation) == forgotten
    kinds = "an argument is not handed on", "two mistakes, in two places"
    assert repair.name == kinds[forgotten]


SOFTMAX_OF_ONE = {
    "scoring.attend": """
        def attend(scores, values, mask=None):
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            weights = torch.softmax(scores.unsqueeze(-1), -1).squeeze(-1).nan_to_num()
            return weights @ values
    """,
    "kqv.scaled_dot_product_attention": """
        def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
            scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            return scores[..., None].softmax(dim=-1)[..., 0].nan_to_num() @ value
    """,
}


@pytest.mark.parametrize("target", SOFTMAX_OF_ONE)
def test_a_softmax_along_an_axis_of_length_1_has_its_name(target, tmp_path):
    repair = repair_of(
        target, function_from_file(SOFTMAX_OF_ONE[target], target.split(".")[1], tmp_path)
    )
    assert repair.name == "a softmax along an axis of length 1"
    assert repair.explanation.startswith("There every weight is 1.")
