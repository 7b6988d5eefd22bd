"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.conventions import forbidden
from attncourse.checks.variants.conventions import masked as with_mask

VARIANTS = (forbidden({"MultiHeadAttention": with_mask("forward", "weights")}),)
