"""The exercises of chapter 14, what the heads learned.

The models of the cases are chapter 13's, with weights of order one. They have three heads of four
features, so that no count of one can be taken for the other, and 1/√d_head is exact.
"""

from attncourse.bank.interpret import ablate, head_scores, induction_pattern, pronoun_bias, rollout

EXERCISES = (
    induction_pattern.EXERCISE,
    head_scores.EXERCISE,
    ablate.EXERCISE,
    rollout.EXERCISE,
    pronoun_bias.EXERCISE,
)
