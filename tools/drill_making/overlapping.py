"""Names of mistakes one of which is true, in words, of code that makes another of them.

They are no wrong names for each other, nor is any that is true of much: *ids are not checked* is
half true where one end of the range is not. What code does in the checks' cases does not tell such
names apart.
"""

import re
from collections.abc import Sequence

ALWAYS_VAGUE_NAME = re.compile(r"^something\b")
GUARD_CODE = re.compile(r"\+ 1e-\d+|clamp\(min=1e-\d+\)")  # a small number beside a divisor

OVERLAPPING_NAMES = (
    # chapter 1
    {
        "only one end of the range is checked",
        "ids are not checked",
        "an id out of range gets a row all the same",
        "a wrong id beside right ones passes",
        "the range is checked against d",
    },
    # scores and weights
    {"squashed", "already a softmax", "a tanh around it"},
    {"the products are not added up", "the products are added up along another axis"},
    {
        "reshaped, not transposed",
        "the key is not turned",
        "axes 0 and 1 swapped",
        "axes 1 and 2 swapped",
        ".T on a batch",
    },
    {"key and query swapped", "the scores are transposed"},
    {"no scale", "neither softmax nor scale", "a scale that does not follow d_head"},
    {"no scale", "a scale that does not follow d_k"},
    {"softmax over axis 1", "softmax over the heads"},
    {"softmax over axis 1", "softmax over the queries"},
    {"a score of 0 is not −∞", "masked scores are not low enough"},
    {"the mask is ignored", "weights ignores the mask", "not causal", "everybody looks ahead"},
    {"the mask is ignored", "the mask is handed over as the key"},
    {"the mask is ignored", "0 · ∞ in the mask"},
    {"W is left out", "the queries are not projected"},
    {"the window is not centred", "the window has another width"},
    {"the minimum is subtracted, not the maximum", "no maximum subtracted"},
    {"masked scores are not low enough", "masked scores are lowered too little"},
    {"the weights are not normalised", "divided by something else than the sum"},
    {"divided by something else than the sum", "a guard in the denominator"},
    {"counted, not weighed", "compared with even attention"},
    {"all tokens are equally likely", "a power of the shares"},
    {"the scores are multiplied by a number", "another base than e"},
    {"softmax over axis 0", "softmax over the queries"},
    {"softmax over axis 0", "softmax over the heads"},
    # chapter 4
    {"nothing is permuted", "f never sees shuffled tokens", "one side lacks f"},
    {"too few orders, or the identity among them", "only orders of one kind are tried"},
    {"too few orders, or the identity among them", "nothing is permuted"},
    {"exact comparison", "atol is not used", "an atol of 0 is taken for none"},
    {"each side has an order of its own", "the order is applied twice, not undone"},
    {"all differences are taken together", "not every entry is compared"},
    # chapter 7
    {"one query for all keys", "the same pair again and again"},
    {"entries between 0 and 1", "entries between −1 and 1"},
    {"the seed is not used", "the same number for every seed"},
    # chapters 8, 9
    {
        "keys or values from x",
        "x is among those who are asked",
        "one view for key and value",
        "keys and values exchanged",
        "y asks",
    },
    {"weights is transposed", "y asks"},
    {"the values are not projected", "the values are forgotten"},
    {
        "another two axes change places",
        "axes counted from the front",
        "the axes are left as they are",
    },
    {"another two axes change places", "axes counted from the front", "the axes are not put back"},
    {"the axes are not put back", "a token is not one row"},
    {"reshaped straight to (h, n, d/h)", "heads that are not parts of the features"},
    {"a head takes every h-th feature", "n_heads taken for the width of a head"},
    {"key/value heads are not repeated in runs", "key/value heads are not used each by its own"},
    {"one map or one set of keys for all heads", "key/value heads are not used each by its own"},
    {"the heads' weights averaged", "the heads are not each in their place"},
    {"not all projections are copied", "one projection is filled from another"},
    # chapter 10
    {"several outputs in one gradient", "the features are not taken one by one"},
    # chapter 11
    {
        "the exponents do not begin at 0",
        "all exponents times one number",
        "all angles times one number",
        "another base",
        "base is ignored",
    },
    {
        "the 2 of 2i/d is missing, or there twice",
        "the exponent is not divided by d",
    },
    {"divided by d outside the power", "the exponent is not divided by d"},
    {"turned the other way", "the sign of the position is lost", "the exponent has the wrong sign"},
    {
        "a reflection in place of a rotation",
        "both sines with the same sign",
        "parts of the rotation are missing",
        "sine and cosine exchanged",
    },
    {"pairs (i, i + d/2)", "neighbours on one side, halves on the other"},
    # chapter 12
    {"a norm is missing", "not all that attention reads is normalised", "no norm"},
    {"always pre-norm, or always post-norm", "pre-norm and post-norm swapped"},
    {"a norm at the wrong branch", "one norm shared by all branches"},
    {"normalised before the sum, not after it", "the norm behind the branch in pre-norm"},
    {"no dropout on what the branches return", "dropout on some of the branches"},
    {"one mask for both attentions", "memory_mask is ignored", "the masks are exchanged"},
    {"keys and values from x", "the memory asks", "the attentions are exchanged"},
    {"no feed-forward layer", "a branch is left out"},
    {"an attention is missing", "no attention"},
    # chapter 13
    {"the temperature is ignored", "drawn without the temperature"},
    {"drawn without the temperature", "the temperature comes after the filters"},
    {"the temperature is ignored", "multiplied by the temperature", "a power of the temperature"},
    {"one draw for all rows", "one row alone"},
    {"a softmax of the shares", "a power of the shares"},
    {"all tokens are equally likely", "a power of the shares"},
    # chapter 14
    {
        "the whole layer is silent",
        "the others are silent",
        "another head",
        "not the run of features of this head",
    },
    {
        "the mean is not there",
        "not the mean over batch and positions",
        "the mean of something else",
        "the mean does not go through W_o",
    },
    {"rows, not columns", "not the run of features of this head"},
    {"the token itself is left out", "what followed is not marked"},
    {"two places behind the equal token", "what followed is not marked"},
    {"it points at the token before", "the last row or column is left out"},
    # chapter 16
    {"other letters are not checked", "other letters are dropped"},
    {"long sequences are cut off", "longer sequences are let through"},
    {"another order of the alphabet", "numbered as they come"},
    {"a row is never drawn", "resamples of another size"},
    {"the level is not used", "another default for the level"},
    {"one tail is cut", "from the least to the largest"},
    {"clusters that meet are not joined", "chains of near-copies are not followed"},
    # chapter 17
    {
        "the running sum is not rescaled",
        "each block from its own maximum",
        "the new block is rescaled, not the sum",
        "from the maximum before",
    },
    {
        "the maximum is that of the last block",
        "only the last block counts",
        "each block from its own maximum",
    },
    {"no maximum subtracted", "the maximum is never renewed", "the maximum begins at a number"},
    {
        "nothing is rescaled when the maximum moves",
        "the output is not rescaled",
        "the normaliser is not rescaled",
        "the new tile is rescaled, not the sums",
        "each tile from its own maximum",
    },
    {"only the last tile counts", "the output is not rescaled"},
    {
        "every tile has the first tile's mask",
        "the mask is not cut along with the scores",
        "the mask's rows do not move along",
        "the mask's columns do not move along",
    },
    {"the last keys are dropped", "the later keys are left out"},
    {"a query sees the keys of its own block alone", "the later keys are left out"},
    # chapter 18
    {
        "from left to right, not by rank",
        "in one walk from the left",
        "in the order of the dictionary",
        "from the end of the word",
        "the highest rank first",
    },
    {"from the end of the word", "from right to left"},
    {"one merge and no more", "each merge at one place only", "what is joined is not joined again"},
    {"only one of the two is turned", "nothing is turned", "positions is ignored"},
    {"both are turned the other way", "turned backwards"},
    {"key/value heads are not used each by its own", "key/value heads in the wrong order"},
    {"the sum is normalised", "the norm behind the branch"},
    # chapters 19, 20
    {"all but the edges is cut", "whole rows or columns are cut"},
    {"as many blocks as a block has numbers", "a scale for every number"},
    {"the mask forgets that nobody looks ahead", "everybody looks ahead"},
    {"one mask for all sequences", "the first sequence's padding for all"},
    {"padding has positions below 0", "positions of padding are those of tokens"},
    {"the mask forgets the padding", "rows of padding are hidden, not columns"},
    # chapter 21
    {"the state is never carried on", "nothing is corrected", "the state fades"},
    {"no tokens are let through", "nothing is refused"},
    {".T on a batch", "a product that knows no batch", "axes 0 and 1 swapped"},
    {
        "neither latents nor turned keys have an axis for the heads",
        "the latents are lined up with something else",
        "the shared turned key is lined up with something else",
    },
    # what readers of thirty drawn by lot found, with what is like it
    {
        "the future in place of the past",
        "what is allowed is not the past",
        "every token sees the next one",
        "the mask is inverted",
    },
    {"no eps", "eps is not added to the mean square"},
    {
        "no eps",
        "another eps",
        "eps is not added to the variance",
        "eps outside the root",
        "the mean is subtracted, and nothing divided",
    },
    {"a norm at the end", "normalised twice"},
    {"averaged over all queries", "divided by all the attention"},
    {"a guard in the divisor", "the shares do not sum to 1"},
    {"a term is missing", "the diagonal is another"},
    {"the sinks are queries", "no sinks"},
    {"what followed is not marked", "the last row or column is left out"},
    {"the mask is ignored", "a row with no key keeps its weights"},
    {"the 2 of 2i/d is missing, or there twice", "all exponents times one number"},
    {"all exponents times one number", "the exponent is not divided by d"},
    {"one of the two is ignored", "p is counted on what are no shares"},
    {"no feature map", "φ of the keys alone"},
    {"the rows are not normalised", "the edges are not renormalised"},
    {"punctuation is dropped", "marks are deleted before the words are split"},
    {"no warm-up", "the larger of the two"},
    # what two readers found of larger faults that bring a smaller one along
    {"all sines, then all cosines", "a reshape that keeps the wrong order"},
    {"all sines, then all cosines", "a pair is not sine and cosine"},
    {"classes from the predictions", "classes that are only predicted count too"},
    {"two classes alone", "classes that are only predicted count too"},
    {"two classes alone", "a class is left out"},
    {"blocks, not windows", "the columns sum to 1"},
    {"the mask is inverted", "a token does not see itself"},
    {"the mask is inverted", "the old keys are shut out"},
)


def names_overlap(first: str, second: str) -> bool:
    """True if one of two names may be true of code that makes the other's mistake."""
    return any({first, second} <= names for names in OVERLAPPING_NAMES)


def is_fair_name(name: str, right: Sequence[str]) -> bool:
    """True unless a wrong name is true in words of right code, whatever line of it is changed.

    *Something is done to the vectors* is true of many; *a guard in the denominator* of right code
    that has one, too small to be seen.
    """
    if ALWAYS_VAGUE_NAME.search(name):
        return False
    return "guard" not in name or not GUARD_CODE.search("\n".join(right))
