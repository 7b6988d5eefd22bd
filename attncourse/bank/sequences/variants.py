"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import PERCENT
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "percent",
        "The result is in **percent** here: 100 where every answer is right, and not 1.",
        "the accuracy is in percent here",
        "Your answer is a share from 0 to 1, as in the book and in its published answers. In this "
        "assignment it is in percent: 100 times as much.",
        {"balanced_accuracy": Adapter(result=PERCENT)},
        rewordings("""
            a number from 0 to 1: for each class, the share
            → a number from 0 to 100: for each class, the percentage
            (3/4 + 1/2)/2, so expect 0.625 → (75 + 50)/2, so expect 62.5
            a guess has 1/classes → a guess has 100/classes
        """),
    ),
)
