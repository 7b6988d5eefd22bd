"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.conventions import forbidden, masked

VARIANTS = (
    forbidden(
        {"LlamaBlock": masked("forward")},
        """
            `scaled_dot_product_attention(query, key, value, mask)` is promised a key
            → `scaled_dot_product_attention(query, key, value, ~mask)` is promised a key
        """,
    ),
)
