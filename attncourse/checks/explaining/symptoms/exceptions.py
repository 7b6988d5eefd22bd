"""Symptoms in exceptions: those that name the mistake, and the line in which calls end."""

import re
from collections import Counter

from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.symptoms.symptom import Symptom, names_in_words
from attncourse.checks.trying.trials import Trial


def unknown_name(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that some call reads an undefined name; None if none does.

    No input explains that, so it is told before anything else that is wrong.
    """
    wrong = [t for t in trials if t.wrong and t.outcome.kind == "raised"]
    for pattern, name, cure in UNDEFINED_NAMES:
        matches = [m.groups() for t in wrong if (m := re.match(pattern, t.outcome.text))]
        if matches:
            mistake = Mistake(name.format(*matches[0]), cure.format(*matches[0]))
            return Symptom(mistake.name, sure=True, mistake=mistake, all=False)
    return None


UNDEFINED_NAMES = (  # the error's pattern, the mistake's name, its explanation
    (
        r"NameError: name '(\w+)' is not defined",
        "`{}` is not defined",
        "Where your code asks for `{}`, nothing has that name. Is it spelled as where it was made? "
        "What comes from a library is imported first.",
    ),
    (
        r"UnboundLocalError: .*?'(\w+)'",
        "`{}` has no value yet",
        "On one way through your code `{}` is used before anything is assigned to it: that stands "
        "behind an `if` that does not hold, in a loop that has nothing to go through, or further "
        "down.",
    ),
    (
        r"AttributeError: module '([\w.]+)' has no attribute '(\w+)'",
        "there is no `{0}.{1}`",
        "Your code asks `{0}` for `{1}`, which it has not. How is the name spelled, and which "
        "library has it?",
    ),
)


def known_error(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the first symptom of ``MODULE_ERRORS`` and ``ERROR_CAUSES`` that matches; or None.

    One on a module's parameters has to match in some wrong case, the others in all wrong cases.
    """
    wrong = [t for t in trials if t.wrong]
    for pattern, name, cure in MODULE_ERRORS + ERROR_CAUSES:
        matches = [(t, match) for t in wrong if (match := re.match(pattern, t.outcome.text))]
        sure = pattern.startswith("your module") or len(matches) == len(wrong)
        if matches and sure:
            names = names_in_words(dict.fromkeys(match[1] for _, match in matches))
            mistake = Mistake(name.format(names), cure.format(names))
            shown_by = tuple(t for t, _ in matches)
            return Symptom(mistake.name, sure=True, mistake=mistake, all=False, shown_by=shown_by)
    return None


MODULE_ERRORS = (  # as in ``UNDEFINED_NAMES``
    (
        "your module has parameters that nobody asked for: (.+)",
        "a parameter too many: {}",
        "Your module learns {} as well, which the exercise does not name. Hold the parameters that "
        "it lists and no others.",
    ),
    (
        r"your module has no parameter ([^;]+);",
        "there is no parameter {}",
        "The exercise says what your module's parameters are called, and {} is not there. A layer "
        "`self.W = nn.Linear(…)` has its numbers in `W.weight`, and in `W.bias` where it is made "
        "with one; an `nn.Parameter` has them in `W` itself.",
    ),
    (
        r"your module has (\S+) of shape",
        "{} has another shape",
        "The exercise says how large each parameter is, and {} is not. `nn.Linear(d_in, d_out)` "
        "stores its weight as (d_out, d_in); an `nn.Parameter` has the shape that you give it.",
    ),
    (
        r"your module learns() \d+ numbers, expected",
        "fewer parameters than asked for",
        "The layers and weights that the exercise names hold more numbers than your module learns. "
        "Two names may stand for one layer, as after `self.b = self.a`, where each has its own; or "
        "a weight is a plain tensor and no `nn.Parameter`.",
    ),
    (
        r"called (\S+), which this exercise asks you to build",
        "{} is called, which is to be written",
        "The exercise asks you to build what `{}` does, so it may not be called: write it out of "
        "sums, products and the other plain operations.",
    ),
    (
        r".*(Boolean value of Tensor|truth value of an array)",
        "one truth value of a whole array",
        "`if x:`, `x or …` and `if a > b:` ask for one truth value, and an array has one for each "
        "entry. Whether any entry is so is asked by `.any()`, whether x was given by "
        "`x is not None`; entry by entry choose `np.where` or `torch.where`.",
    ),
    (
        r".*(with a bool tensor|on a bool tensor|boolean (?:subtract|negative))",
        "truth values are subtracted",
        "Neither torch nor NumPy takes a minus of truth values. `~mask` exchanges True and False; "
        "`mask.to(x.dtype)`, in NumPy `mask.astype(float)`, makes numbers of them.",
    ),
    (
        ".*(leaf Variable that requires grad is being used in an in-place)",
        "a parameter is written to while gradients are recorded",
        "`copy_` and `+=` on a parameter are steps that torch would have to go back through. Write "
        "to parameters inside `with torch.no_grad():`.",
    ),
    (
        r".*cannot assign '[\w.]+' as parameter '(\w+)'",
        "a tensor in the place of a parameter",
        "torch refuses `layer.{0} = tensor`. Write `layer.{0} = nn.Parameter(tensor)`, or copy the "
        "numbers into one that is there: `with torch.no_grad(): layer.{0}.copy_(tensor)`.",
    ),
    (
        r".*(has no attribute '_(?:parameters|modules|buffers|\w+_hooks)'|before Module\.__init__)",
        "super().__init__() is missing",
        "`nn.Module` makes its lists of parameters and layers in its own `__init__`. Call "
        "`super().__init__()` before anything is assigned.",
    ),
)

# As in ``UNDEFINED_NAMES``. ``line_of_error`` adds the explanation to a line, too.
ERROR_CAUSES = (
    (
        r".*missing \d+ required positional arguments?.*in the line `[\w.]+ = ([\w.]+)\(\)`",
        "{} is called where it is to be kept",
        "Brackets call it, with nothing in them. Keep the function itself, `{}` without brackets, "
        "and call it where its argument is there.",
    ),
    (
        r".*(unsupported operand type\(s\) for .*'NoneType')",
        "None is calculated with",
        "None is no number. It is what an argument is that was not given: ask for each by itself, "
        "`if … is not None`, also where another one was given. And it is what a function gives "
        "back that has no `return`.",
    ),
    (
        r".*(Can't call numpy\(\) on Tensor that requires grad)",
        "NumPy on the way",
        "`.numpy()`, and NumPy's functions, know nothing of gradients, and `.detach()` cuts them "
        "off. Stay with torch operations on the tensors themselves.",
    ),
    (
        r".*(The shape of the mask .* does not match|boolean index did not match)",
        "a mask as an index does not broadcast",
        "In `x[mask]` the mask does not broadcast. `x.masked_fill(mask, …)`, in NumPy "
        "`np.where(mask, …, x)`, broadcasts it, and leaves x as it was.",
    ),
    (
        r".*(Dimension out of range .*but got \d|axis \d+ is out of bounds for array)",
        "an axis that is not there",
        "It is there with a batch in front, and then it is another one. Count from the end, −1, "
        "−2: that is the same axis in every call.",
    ),
    (
        r".*(view size is not compatible with input tensor)",
        "`.view` where memory is not in order",
        "After `.transpose` or `.permute` the numbers lie elsewhere than `.view` takes them from. "
        "`.reshape` does the same and copies where it has to.",
    ),
    (
        r".*(expected .* to have the same dtype|must have the same dtype|expected scalar type)",
        "two dtypes in one product",
        "A product takes one dtype. Make what you create yourself like what came in: "
        "`dtype=x.dtype`, or `.to(x.dtype)` behind it.",
    ),
)
LINE_PATTERN = re.compile(r"\(in the line `(.*?)`")


def line_of_error(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that most wrong calls raise in one line of the student's code; or None.

    If that line is a ``raise`` or an ``assert``, the answer refuses what it should take.
    """
    wrong = [t for t in trials if t.wrong and t.case.raises is None]
    errors_and_lines = [
        (t.outcome.error, line_match[1])
        for t in wrong
        if (line_match := LINE_PATTERN.search(t.outcome.text))
    ]
    if not errors_and_lines:
        return None
    (error, line), times = Counter(errors_and_lines).most_common(1)[0]
    if error is None or 2 * times <= len(wrong):
        return None
    often = "" if times == len(wrong) else "mostly, "
    how = f"stops with {with_article(error.__name__)}"
    if re.match(r"(raise|assert)\b", line) or error is NotImplementedError:
        how = "refuses what it should take,"
    texts = [t.outcome.text for t in wrong if line in t.outcome.text]
    likely_cure = next(
        (cure for words, _, cure in ERROR_CAUSES if all(re.match(words, t) for t in texts)), ""
    )
    cause = f". {likely_cure.removesuffix('.').format('it')}" if likely_cure else ""
    return Symptom(f"{often}it {how} in the line `{line}`{cause}", sure=False)


def with_article(name: str) -> str:
    """Return the name of an exception after *a* or *an*."""
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
