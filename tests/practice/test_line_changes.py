"""Which changes of a line are refused because a reader would see them at once."""

import pytest
from drill_making.line_changes import (
    RANK_OF_OPTION,
    LineChange,
    does_nothing,
    is_odd,
    leaves_unused,
    other_lines_changed,
)
from drill_making.proving import fewer_draws

from attncourse.checks.explaining import diagnosis

LINES = [
    "def mix(A, X):",
    "    weights = A / A.sum(-1, keepdims=True)",
    "    mixed = weights @ X",
    "    return mixed",
]


@pytest.mark.parametrize(
    ("line", "wrong", "unused"),
    [
        (3, "    return A @ X", True),
        (3, "    return mixed.T", False),
        (2, "    mixed = A @ X", True),
        (2, "    mixed = weights @ X.T", False),
        (1, "    weights = X", False),
    ],
)
def test_an_option_that_leaves_a_value_unread_is_refused(line, wrong, unused):
    change = LineChange(line, wrong, LINES[line], RANK_OF_OPTION)
    assert leaves_unused(change, LINES) is unused
    assert not leaves_unused(LineChange(line, wrong, LINES[line], RANK_OF_OPTION - 1), LINES)


def test_an_array_of_which_entries_are_set_is_not_read_by_that():
    lines = ["def f(x):", "    y = x + 0", "    y[0] = 1", "    return y"]
    assert leaves_unused(LineChange(3, "    return x", lines[3], RANK_OF_OPTION), lines)
    assert not leaves_unused(LineChange(3, "    return -y", lines[3], RANK_OF_OPTION), lines)


@pytest.mark.parametrize(
    ("wrong", "right", "odd"),
    [
        ("x = x", "x = x + y", True),
        ("x = x - y", "x = x + y", False),
        ("scores / 1", "scores / 2", True),
        ("while True:", "while i < n:", True),
        ("return ( weights ) / total", "return (weights @ X) / total", True),
        ("return f(weights) / total", "return f(weights @ X) / total", False),
        ("a < 0, 0, a.log()", "a == 0, 0, a.log()", False),  # a line of arguments
        ("~mask[..., :n], 0", "~mask[..., :n], -math.inf", False),
        ("total + 1", "total.append(1)", True),
    ],
)
def test_what_nobody_would_write_is_refused(wrong, right, odd):
    assert is_odd(wrong, right) is odd


@pytest.mark.parametrize(
    ("wrong", "right", "idle"),
    [
        ("y = f(x) + 0", "y = f(x) + 1", True),
        ("y = x % x", "y = x % n", True),
        ("ok = 1 <= k <= k", "ok = 1 <= k <= n", True),
        ("y = x.transpose(-3, -3)", "y = x.transpose(-4, -3)", True),
        ("y = np.swapaxes(x, -1, -1)", "y = np.swapaxes(x, -1, -2)", True),
        ("y = x[..., :]", "y = x[..., :k]", True),
        ("y = x[0:]", "y = x[1:]", True),
        ("x[:] = 0", "x[:n] = 0", False),
        ("y = x[:, None]", "y = x[None]", False),
        ("y = np.array([v for v in x])", "y = np.array([v / s for v in x])", True),
        ("y = [v for v in x if v]", "y = [v for v in x if v > 1]", False),
        ("y = x - 1", "y = x + 1", False),
        ("y = x + 0", "y = x + 0; z = 1", False),
        ("y = x * x", "y = x * n", False),
        ("y = x.transpose(0, 1)", "y = x.transpose(-2, -1)", False),
    ],
)
def test_a_change_that_does_nothing_is_refused(wrong, right, idle):
    assert does_nothing(wrong, right) is idle


@pytest.mark.parametrize(
    ("code", "line", "mended"),
    [
        (
            "def f(x, y):\n    for a, b in zip(\n        g(x), g(y)\n    ):\n        h(a, b)",
            1,
            "for a, b in zip(g(y), g(x)):",
        ),
        ("def f(x):\n    y = x > 0\n    return y", 1, "return y.bool()"),
        ("def f(x):\n    y = x > 0\n    return x, y", 1, "return (x, y.tril())"),
    ],
)
def test_what_a_reader_might_change_elsewhere_is_tried(code, line, mended):
    assert any(mended in other for other in other_lines_changed(code, line))


def test_a_choice_is_made_on_one_further_draw():
    before = diagnosis.N_FURTHER_DRAWS
    with fewer_draws():
        assert diagnosis.N_FURTHER_DRAWS == 1
    assert before == diagnosis.N_FURTHER_DRAWS > 1
