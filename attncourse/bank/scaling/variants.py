"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import BITS
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "bits",
        "The entropy is in **bits** here, with the logarithm to base 2, where in the book it is in "
        "nats. The gradient is that of the entropy in bits.",
        "entropies are in bits here",
        "Your entropy is in nats, as in the book and in its published answers. In this assignment "
        "it is in bits: use `torch.log2`, or divide by ln 2.",
        {"attention_entropy": Adapter(result=BITS, drops=("logarithms to another base",))},
        rewordings(r"""
            $$H = -\sum_j a_j \ln a_j ,$$ → $$H = -\sum_j a_j \log_2 a_j ,$$
            with the natural logarithm → with the logarithm to base 2
            Expect about 1.0397, 0.6931 and 0 → Expect about 1.5, 1 and 0
            −Σ a ln a → −Σ a log₂ a
            limit of a ln a at → limit of a log₂ a at
            `torch.xlogy(weights, weights)` → `torch.xlogy(weights, weights)` over ln 2
            ln n. You divide by it → log₂ n. You divide by it
            terms −a ln a → terms −a log₂ a
            You sum −ln a alone → You sum −log₂ a alone
            (1 − a) ln(1 − a) → (1 − a) log₂(1 − a)
            1).log()` is the logarithm → 1).log2()` is the logarithm
        """),
    ),
)
