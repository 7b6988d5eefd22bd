"""A forbidden function is detected in every test that uses the answer, not only in its check."""

import pytest

from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.small_course import graded, notebook, solution

LIBRARY_ATTENTION = """
from torch.nn import functional as F

def scaled_dot_product_attention(query, key, value, mask=None, scale=None):
    return F.scaled_dot_product_attention(query, key, value, mask, scale=scale)
"""
QUANTIZABLE = """
import torch
from torch.ao.nn.quantizable import MultiheadAttention

def scaled_dot_product_attention(query, key, value, mask=None, scale=None):
    whole, one = MultiheadAttention(2, 1, bias=False, batch_first=True), torch.eye(2)
    with torch.no_grad():
        for layer in (whole.linear_Q, whole.linear_K, whole.linear_V, whole.out_proj):
            layer.weight.copy_(one)
    return whole(query[None], key[None], value[None])[0][0]
"""
# Computes while the arguments arrive, before the answer is called.
COMPUTING_AHEAD = """
import json, socket
import torch
from torch.nn import functional as F

real, outcomes = socket.socket.recv_into, []

def recv_into(self, view, *rest):
    count = real(self, view, *rest)
    try:
        x = torch.ones(1, 2, 2)
        outcomes.append(F.scaled_dot_product_attention(x, x, x)[0])
    except Exception:
        pass
    return count

def scaled_dot_product_attention(query, key, value, mask=None, scale=None):
    found, outcomes[:] = (outcomes or [query])[-1], []
    return found

socket.socket.recv_into = recv_into
"""
BILINEAR = """
import torch
from torch import nn
from torch.nn import functional as F

class Other(nn.Module):
    def __init__(self, d_q, d_k):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_q, d_k) / d_q**0.5)

    def score(self, query, key):
        pairs = query[..., :, None, :], key[..., None, :, :]
        pairs = [p.contiguous() for p in torch.broadcast_tensors(*pairs)]
        return F.bilinear(*pairs, self.W[None])[..., 0]

    forward = score

class BilinearScore(nn.Module):
    def __new__(cls, d_q, d_k):
        return Other(d_q, d_k)
"""
ATTENTION = "scaled_dot_product_attention(x, x, x)"
FORBIDDEN = "Forbidden"


def message_of_test(target: str, answer: str, use: str) -> str:
    """Return the message of a test that uses an answer, beside the exercise's check."""
    name = target.split(".")[1]
    check = f'from attncourse.checks import check\ncheck("{target}", {name})'
    test = f"import torch\nx = torch.ones(2, 2)\nassert {use}.shape == (2, 2)"
    tests = graded("tested", test, 1), graded("checked", check, 9)
    assignment = Assignment(
        "01_watched", read_cells(notebook(solution("a", f"{name} = 0"), *tests))
    )
    data = notebook(solution("a", answer), *tests)
    report = grade_submission(
        data, assignment, limits=Limits(submission=60, cell=10, call=5), seed=1
    )
    return report.cells["tested"].message


@pytest.mark.parametrize("disguise", ["", "scaled_dot_product_attention.__self__ = 5"])
def test_a_disguised_function_is_watched(disguise):
    message = message_of_test(
        "kqv.scaled_dot_product_attention", LIBRARY_ATTENTION + disguise, ATTENTION
    )
    assert FORBIDDEN in message


def test_library_attention_is_watched_everywhere():
    assert FORBIDDEN in message_of_test("kqv.scaled_dot_product_attention", QUANTIZABLE, ATTENTION)


def test_computing_while_arguments_arrive_is_watched():
    assert FORBIDDEN in message_of_test(
        "kqv.scaled_dot_product_attention", COMPUTING_AHEAD, ATTENTION
    )


@pytest.mark.parametrize("use", ["(x, x)", ".forward(x, x)", ".score(x, x)"])
def test_objects_that_an_answer_makes_are_watched(use):
    message = message_of_test("scoring.BilinearScore", BILINEAR, "BilinearScore(2, 2)" + use)
    assert FORBIDDEN in message


def test_functions_that_are_no_answers_are_not_watched():
    other_function = LIBRARY_ATTENTION.replace("def scaled_dot_product_attention", "def mine")
    answer = other_function + "\ndef scaled_dot_product_attention(*x):\n    return x[0]\n"
    assert message_of_test("kqv.scaled_dot_product_attention", answer, "mine(x, x, x)") == ""
