"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.conventions import columns, forbidden, masked, with_columns

VARIANTS = (
    columns(
        {
            "CrossAttention": with_columns("x", "y", methods=("forward", "weights")),
            "AttentionPooling": with_columns("x", methods=("forward", "weights")),
        },
        """
            A token is a row. Where → A token is a column. Where
            | `x` | `(..., m, d_x)` | who asks | → | `x` | `(..., d_x, m)` | who asks |
            | `y` | `(..., n, d_y)` | who is asked → | `y` | `(..., d_y, n)` | who is asked
            | `forward` returns | `(..., m, d_v)` | | → | `forward` returns | `(..., d_v, m)` | |
            the output alone, one row for each token of x
            → the output alone, one column for each token of x
            Expect `torch.Size([2, 3, 6])` and → Expect `torch.Size([2, 6, 3])` and
            torch.ones(2, 3, 7), torch.ones(2, 5, 8) → torch.ones(2, 7, 3), torch.ones(2, 8, 5)
            which returns one row for each query → which returns one column for each query
            | `x` | `(..., n, d)` | one element per row |
            → | `x` | `(..., d, n)` | one element per column |
            | `forward` returns | `(..., n_queries, d)` | with one query too: `(..., 1, d)` |
            → | `forward` returns | `(..., d, n_queries)` | with one query too: `(..., d, 1)` |
            Expect `torch.Size([2, 1, 5])` and `torch.Size([2, 3, 5])`
            → Expect `torch.Size([2, 5, 1])` and `torch.Size([2, 5, 3])`
            sets = torch.ones(2, 7, 5) → sets = torch.ones(2, 5, 7)
            return all of them, (..., n_queries, d) → return all of them, (..., d, n_queries)
        """,
    ),
    forbidden(
        dict.fromkeys(("CrossAttention", "AttentionPooling"), masked("forward", "weights")),
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden. Chapter 5's functions, "
        "which you may call, want True for allowed: hand `~mask` on to them.",
    ),
)
