"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import BITS
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "bits",
        "Losses are in **bits** here, with logarithms to base 2, where in the book they are in "
        "nats.",
        "losses are in bits here",
        "Your answer has losses in nats, as the book and its published answers have. In this "
        "assignment they are in bits: a loss in nats is divided by ln 2, and a perplexity is 2 to "
        "the mean loss.",
        {
            "next_token_loss": Adapter(result=BITS, drops=("not in nats",)),
            "perplexity": Adapter({"losses": BITS}, drops=("the base is 2",)),
        },
        rewordings("""
            −log softmax(logits[t])[ids[t + 1]], in nats
            → −log₂ softmax(logits[t])[ids[t + 1]], in bits
            so expect about 0.805 → so expect about 1.161
            gave a mean loss in nats → gave a mean loss in bits
            `perplexity(losses, counts)`: e to the mean loss
            → `perplexity(losses, counts)`: 2 to the mean loss
            the mean loss of each batch, in nats → the mean loss of each batch, in bits
            perplexity([math.log(2), math.log(8)], [30, 10]) → perplexity([1.0, 3.0], [30, 10])
            mean of −log p(next token) → mean of −log₂ p(next token)
            −log of its share → −log₂ of its share
            exp of the mean over all → 2 to the mean over all
            You raise e to → You raise 2 to
            in nats. The perplexity is e to → in bits. The perplexity is 2 to
            exp(−loss) → 2^(−loss)
            are averaged, and exp comes last → are averaged, and the power comes last
            `math.exp` of it → 2 to that power
            Python's own numbers and `math.exp` → Python's own numbers and `**`
        """),
    ),
)
