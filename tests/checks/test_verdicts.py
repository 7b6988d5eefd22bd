"""What a verdict says of answers that break: each in its own words, never with a traceback."""

import collections
import contextlib
import itertools
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import attncourse.checks
from attncourse import mixing, transformer
from attncourse.checks import CheckFailed, Verdict, check, examine, exercises, judging, observe
from attncourse.checks.exercise import Case, Criterion, Exercise, unchanged
from attncourse.checks.explaining import diagnosis
from attncourse.checks.judging import judge
from attncourse.checks.showing.verdict import full_sentence, short_number
from attncourse.checks.trying.compare import difference, dtype_name, is_array
from attncourse.checks.trying.outcome import Outcome, named_arguments
from attncourse.checks.trying.trials import Trial, draw


def raises(A, X):
    return A[99] @ X


def hangs(A, X):
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722 - the limit has to get past this, as a student may write it
            pass


def mutates(A, X):
    A *= 2
    return A / 2 @ X


def exits(A, X):
    sys.exit("goodbye")


def recurses(A, X):
    return recurses(A, X)


class RefusesAll:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None

    def __deepcopy__(self, memo):
        raise RuntimeError("no")


Pair = collections.namedtuple("Pair", "a b")

BROKEN = [
    (raises, "raised IndexError: index 99 is out of bounds"),
    (raises, "in the line `return A[99] @ X`"),
    (exits, "raised SystemExit: goodbye"),
    (recurses, "raised RecursionError"),
    (lambda A, X: None, "returned None: is a return missing?"),
    (lambda A, X: (A @ X).tolist(), "returned a list, expected an array of numbers"),
    (lambda A, X: "U", "returned a str, expected an array of numbers"),
    (lambda A, X: Pair(A, X), "returned a Pair, expected an array of numbers"),
    (lambda A, X: RefusesAll(), "returned a RefusesAll, expected an array of numbers"),
    (lambda A, X: (A @ X).astype(object), "an ndarray of dtype object, expected an array of"),
    (lambda A, X: (A @ X) * 1j, "an ndarray of dtype complex128, expected an array of numbers"),
    (lambda A, X: (A @ X)[..., :1], "returned shape (3, 1), expected (3, 2)"),
    (lambda A, X: (A @ X) * np.nan, "returned NaN"),
    (lambda A, X: A.astype("f4") @ X.astype("f4"), "precision was lost"),
    (lambda A: A, "raised TypeError: <lambda>() takes 1 positional argument but 2 were given"),
]


@pytest.mark.parametrize(("answer", "phrase"), BROKEN, ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_broken_answer_is_explained_in_words(answer, phrase):
    verdict = examine("mixing.mix", answer, seed=0)
    assert not verdict.passed
    assert phrase in str(verdict)
    assert "Traceback" not in str(verdict)
    assert "<pre" in verdict._repr_html_()


def test_an_answer_that_cannot_be_called_is_not_judged():
    verdict = examine("mixing.mix", 3, seed=0)
    assert (verdict.earned, verdict.passed) == (0, False)
    for text in (str(verdict), verdict._repr_html_()):
        assert "not judged" in text
        assert "is an int (3), nothing that can be called" in text


@pytest.mark.parametrize("answer", [b for b, _ in BROKEN[:11]])
def test_a_broken_answer_earns_nothing(answer):
    assert examine("mixing.mix", answer, seed=0).earned == 0


def quick_exercise(reference, limit=0.2) -> Exercise:
    """Return a small exercise with a short time limit."""
    cases = lambda rng: [Case((rng.normal(size=(3, 3)), rng.normal(size=(3, 2))))]  # noqa: E731
    criteria = (Criterion("values", 2, cases), Criterion("again", 1, cases))
    return Exercise(
        "mixing.mix",
        reference,
        "Chapter 2",
        (*criteria, unchanged()),
        (),
        1,
        1,
        limit=limit,
    )


def test_an_endless_loop_is_stopped_and_the_rest_not_tried():
    verdict = judge(quick_exercise(mixing.mix), hangs)
    assert "did not return in time" in verdict.criteria[0].message
    assert "not tried" in verdict.criteria[1].message
    assert verdict.earned == 0


def test_an_endless_loop_is_stopped_in_another_thread_too():
    verdicts = []
    stop = threading.Event()
    thread = threading.Thread(
        target=lambda: verdicts.append(judge(quick_exercise(mixing.mix), lambda A, X: stop.wait()))
    )
    thread.start()
    thread.join(120)
    stop.set()
    assert "did not return in time" in verdicts[0].criteria[0].message


def test_changed_argument_costs_its_own_criterion_only():
    verdict = examine("mixing.mix", mutates, seed=0)
    failed = [c for c in verdict.criteria if not c.passed]
    assert [c.name for c in failed] == ["does not change its arguments"]
    assert "changed its argument A in place" in failed[0].message
    assert verdict.earned == verdict.possible - 1


def test_a_view_of_an_argument_is_judged_as_returned():
    shared = np.zeros((3, 2))

    def answer(A, X):
        shared[...] = A @ X if X.shape == (3, 2) else 0
        return shared

    assert judge(quick_exercise(mixing.mix), answer, seed=1).passed


def test_refusals_count_only_once_values_are_right():
    def refuses_everything(n, width):
        raise ValueError

    assert examine("mixing.window_weights", refuses_everything).earned == 0
    assert examine("mixing.normalize_rows", lambda A: None).earned == 0


def test_wrong_refusal_says_so():
    def answer(n, width):
        if width % 2 == 0:
            raise KeyError("even")
        return mixing.window_weights(n, width)

    verdict = examine("mixing.window_weights", answer)
    failed = [c for c in verdict.criteria if not c.passed]
    assert len(failed) == 1
    assert "raised KeyError: 'even'" in failed[0].message
    assert "expected ValueError" in failed[0].message


def test_seed_repeats_the_verdict_and_none_is_fresh():
    wrong = lambda A, X: A.T @ X  # noqa: E731
    assert str(examine("mixing.mix", wrong, seed=7)) == str(examine("mixing.mix", wrong, seed=7))
    assert examine("mixing.mix", wrong).seed != examine("mixing.mix", wrong).seed


def test_check_prints_a_pass_and_raises_a_failure(capsys):
    check("mixing.mix", mixing.mix)
    assert "✓ mixing.mix: 7 of 7 points" in capsys.readouterr().out
    with pytest.raises(CheckFailed, match="A is transposed") as caught:
        check("mixing.mix", lambda A, X: np.swapaxes(A, -1, -2) @ X)
    assert caught.value.verdict.diagnosis.name == "A is transposed"
    assert not any("Traceback" in line for line in caught.value._render_traceback_())


def test_of_two_mistakes_at_least_one_is_named():
    """A transposition that also crashes on batches is still told as a transposition."""
    verdict = examine("mixing.mix", lambda A, X: A.T @ X)
    assert verdict.diagnosis.name == "A is transposed"


def test_a_mistake_of_no_known_kind_gets_no_name():
    assert examine("mixing.mix", lambda A, X: np.sin(A @ X)).diagnosis is None
    assert examine("mixing.mix", raises).diagnosis is None


def test_unknown_target_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"no exercise is called 'mixing.mixx'.*'mixing.mix'"):
        examine("mixing.mixx", mixing.mix)
    with pytest.raises(ValueError, match="no exercise is called"):
        examine(None, mixing.mix)


def test_observe_collects_verdicts():
    with observe() as seen:
        examine("mixing.mix", mixing.mix)
    examine("mixing.mix", mixing.mix)
    assert [type(v) for v in seen] == [Verdict]


def test_only_the_first_failure_is_unfolded():
    verdict = examine("mixing.normalize_rows", lambda A: A * 2, seed=1)
    failed = [c.name for c in verdict.criteria if not c.passed and c.message]
    assert len(failed) > 1
    folds = re.findall(r"<details( open)?><summary>. ([^<]*) <", verdict._repr_html_())
    assert folds == [(" open" if name == failed[0] else "", name) for name in failed]


def test_html_escapes_what_a_student_wrote():
    def answer(A, X):
        raise ValueError("<script>alert(1)</script>")

    html = examine("mixing.mix", answer)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    ("value", "expected", "same"),
    [
        (1.0 + 1e-7, 1.0, False),
        (1.0 + 1e-12, 1.0, True),
        (np.float32(1.00001), np.float32(1), True),
        (np.float32(1.001), np.float32(1), False),
        (np.bool_(True), True, True),
        (1, True, False),
        (["a"], ["a"], True),
        (("a",), ["a"], True),
        (["a"], ["b"], False),
        ("a", ["a"], False),
        (10**25, 10**25, True),  # more than an array of whole numbers holds
        (2 * 10**25, 10**25, False),
    ],
)
def test_the_largest_difference_is_described(value, expected, same):
    assert (difference(value, expected) is None) is same
    assert (difference(value, expected, brief=True) is None) is same


def test_a_small_difference_is_called_one_of_precision():
    want = np.array([1.0 / 3 + 1.5e-9] * 3)
    problem = difference(np.array([1 / 3] * 3), want)
    assert problem.kind == "precision"
    said = "differs from what is expected by 2e-09, as little as where precision is lost"
    assert problem.said == said  # of whatever cause
    close = difference(np.full(20, 0.3333333, np.float32), np.full(20, 0.3334444, np.float32))
    assert close.said == "at [0] returned 0.3333, expected 0.3334"
    assert difference(np.full(20, 0.25), np.full(20, 0.5)).said == (
        "at [0] returned 0.25, expected 0.5"
    )


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import attncourse", ("numpy", "torch", "matplotlib")),
        ("import attncourse.mixing", ("torch", "matplotlib")),
        ("import attncourse.lookup, attncourse.self_attention", ("torch", "matplotlib")),
        ("from attncourse.checks import examine; from attncourse.mixing import mix; "
         "assert examine('mixing.mix', mix).passed", ("torch", "matplotlib")),
    ],
)  # fmt: skip
def test_imports_stay_light(statement, absent):
    code = f"import sys; {statement}; print([m for m in {absent!r} if m in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"


def test_exercises_are_named_after_their_chapter():
    for target, exercise in exercises().items():
        assert target == f"{exercise.stem}.{exercise.name}"
        assert exercise.points == sum(c.points for c in exercise.criteria) > 0


def test_agreement_on_wrong_numbers_is_enough_for_a_name():
    def transposed_where_it_is_easy(A, X):
        if A.ndim == X.ndim == 2 and A.shape[0] == A.shape[1] and A.dtype != np.float32:
            return A.T @ X
        return np.zeros(5)

    for seed in range(5):
        verdict = examine("mixing.mix", transposed_where_it_is_easy, seed=seed)
        assert verdict.diagnosis.name == "A is transposed"


def test_agreement_on_truth_values_alone_is_not():
    assert examine("mixing.is_row_stochastic", lambda A, atol=1e-8: True).diagnosis is None
    assert examine("mixing.is_row_stochastic", lambda A, atol=1e-8: False).diagnosis is None


@pytest.mark.parametrize(
    ("value", "expected", "line"),
    [
        (np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]), "at [0, 1] returned 2, expected 3"),
        (2.0, 3.0, "returned 2, expected 3"),
        ({"the output": 2.0}, {"the output": 3.0}, "the output: returned 2, expected 3"),
        (["a"], ["b"], "returned ['a'], expected ['b']"),
        (np.array([np.nan, 1.0]), np.array([0.5, 1.0]), "returned NaN at [0], expected 0.5"),
        (
            np.ones(2),
            torch.ones(2),
            "returned an ndarray of dtype float64, expected a torch tensor",
        ),
        (2.0, torch.tensor(2.0), "returned a float, expected a torch tensor"),
        (
            torch.ones(2),
            torch.ones(2).double(),
            "returned dtype float32, expected float64 like the input",
        ),
        (1, "a", "returned an int, expected a str"),
        (1, ["a"], "returned an int, expected a list"),
        (None, 1.0, "returned None: is a return missing?"),
        (1.0, None, "returned a float, expected None"),
    ],
)
def test_one_line_says_what_differs(value, expected, line):
    assert difference(value, expected).said == line


def test_rounding_errors_are_shown_as_zero():
    assert short_number(-8.9e-16, 50.0) == "0"
    assert short_number(-8.9e-16, 1e-15) == "-8.9e-16"
    assert short_number(float("nan"), 1.0) == "nan"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no scale", "No scale."),
        ("a mask of whole numbers", "A mask of whole numbers."),
        ("letters, not words", "Letters, not words."),
        ("d_v assumed equal to d_k", "d_v assumed equal to d_k."),
        ("x is changed in place", "x is changed in place."),
        ("every matrix with every other", "Every matrix with every other."),
        ("rng=None is not provided for", "rng=None is not provided for."),
        ("float32 comes back as float64", "float32 comes back as float64."),
    ],
)
def test_a_name_in_code_keeps_its_small_letter(name, sentence):
    assert full_sentence(name) == sentence


def test_an_answer_that_raises_here_and_there_gets_a_verdict():
    """Also where it refuses what it should take and takes what it should refuse."""
    refusing = 0
    for exercise in exercises().values():  # on one draw of each, which is kept meanwhile
        if not any(case.raises for _, case, _ in draw(exercise, 3)):
            continue
        refusing += 1
        for period in (2, 3):
            verdict = judge(exercise, raising(exercise.reference, period), 3)
            assert not verdict.passed, (exercise.target, period)
            assert "raised TypeError: not this one" in verdict.full, (exercise.target, period)
    assert refusing > 10


def raising(reference, period: int):
    """Return the reference, which raises at every ``period``-th call."""
    calls = itertools.count(1)

    def answer(*args, **kwargs):
        if next(calls) % period == 0:
            raise TypeError("not this one")
        with contextlib.suppress(ValueError):
            return reference(*args, **kwargs)

    return answer


def test_an_answers_prints_are_hidden_and_mentioned(capsys):
    def wrong(A, X):
        print("scores are", A)
        sys.stdout.flush()
        return A @ X + 1

    verdict = examine("mixing.mix", wrong, seed=1)
    assert capsys.readouterr().out == ""
    for verdict_text in (str(verdict), verdict.full, verdict._repr_html_()):
        assert verdict_text.count("Your code prints.") == 1
    assert len(str(verdict).splitlines()) <= 16
    assert "prints" not in str(examine("mixing.mix", lambda A, X: A @ X + 1, seed=1))
    print("again")
    assert capsys.readouterr().out == "again\n"


# --- the first line stands at once --------------------------------------------------------------


def transposed(A, X):
    return A.T @ X


def test_the_first_line_is_out_before_the_mistake_is_looked_for(capsys, monkeypatch):
    out = []

    def look(*args):
        out.append(capsys.readouterr().out)
        return iter(())

    monkeypatch.setattr(diagnosis, "further_claims", look)
    with pytest.raises(CheckFailed) as failed:
        check("mixing.mix", lambda A, X: 2 * A.T @ X + 1)
    lines = str(failed.value).splitlines()
    assert out == [f"{lines[0]}\n"]
    assert failed.value._render_traceback_() == lines[1:]  # it stands there already


def test_the_verdict_replaces_its_first_line(capsys, monkeypatch):
    shown = []

    class Display:
        update = shown.append

    def show(thing, **how):
        shown.append(thing)
        return Display

    monkeypatch.setattr(attncourse.checks, "display_in_notebook", show)
    with pytest.raises(CheckFailed) as failed:
        check("mixing.mix", lambda A, X: 2 * A.T @ X + 1)
    begun, verdict = shown
    head = str(verdict).splitlines()[0]
    assert str(begun).splitlines()[0] == head
    assert head in begun._repr_html_()
    assert failed.value._render_traceback_() == [
        f"mixing.mix: {verdict.score}. The verdict is above."
    ]
    assert capsys.readouterr().out == ""


def test_a_grader_shows_no_first_line(capsys):
    with observe(), pytest.raises(CheckFailed):
        check("mixing.mix", transposed)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("exercise", exercises().values(), ids=exercises())
def test_an_example_says_when_typed_numbers_differ(exercise):
    """A cell's example in torch is float32, and most of a check's cases are float64."""
    stops = Outcome("raised", error=OSError, text="OSError")
    for criterion, case, _ in draw(exercise, 0):
        short = judging.smallest_example(
            exercise, (Trial(criterion, case, Outcome("value"), stops),)
        )
        for call in (short, judging.call_text(exercise, case)):
            for _, value in named_arguments(exercise, case):
                if is_array(value) and "float" in (name := dtype_name(value)):
                    usual = "float64" if isinstance(value, np.ndarray) else "float32"
                    assert name == usual or name in call, call


# JupyterLab breaks the lines of a <pre> in the middle of words, unless it is told not to.
JUPYTERLAB_HTML = (
    '<style>.lab pre {word-break: break-all}</style><div class="lab" style="width:%dpx">%s</div>'
)
BROKEN = r"""() => {
  const broken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walk.nextNode()) {
    const code = walk.currentNode.parentElement.tagName == 'CODE'
    for (const word of walk.currentNode.data.matchAll(code ? /^.{1,20}$/g : /\S+/g)) {
      const range = document.createRange()
      range.setStart(walk.currentNode, word.index)
      range.setEnd(walk.currentNode, word.index + word[0].length)
      if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) broken.push(word[0])
    }
  }
  return broken
}"""


def test_no_word_of_a_verdict_is_broken_in_jupyterlab(browser):
    def causal_mask(n_queries, n_keys=None):
        return torch.ones(n_queries, n_keys or n_queries, dtype=torch.bool).tril()

    html = judge(exercises()["masking.causal_mask"], causal_mask, 3)._repr_html_()
    page = browser.new_page(viewport={"width": 700, "height": 900})
    for width in range(380, 600, 6):
        page.set_content(JUPYTERLAB_HTML % (width, html))
        assert page.evaluate(BROKEN) == [], width
    page.close()


def test_of_dozens_of_weights_only_a_few_are_shown():
    def unlike(x, memory, mask=None, memory_mask=None):
        return x

    class DecoderBlock(transformer.DecoderBlock):
        forward = staticmethod(unlike)

    failed = examine("transformer.DecoderBlock", DecoderBlock, seed=3).criteria[0]
    assert " more\n" in failed.message
    assert failed.message.count(" of shape ") + failed.message.count(" =\n") <= 8
