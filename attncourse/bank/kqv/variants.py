"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.conventions import columns, forbidden, masked, with_columns

VARIANTS = (
    forbidden(
        {"scaled_dot_product_attention": masked(), "AttentionHead": masked("forward", "weights")}
    ),
    columns(
        {
            "scaled_dot_product_attention": with_columns("query", "key", "value"),
            "AttentionHead": with_columns("x", methods=("forward", "weights")),
        },
        r"""
            A token is a row. Where → In exercises 1 and 2 a token is a row, then a column. Where
            | `query` | `(..., m, d_k)` | | → | `query` | `(..., d_k, m)` | |
            | `key` | `(..., n, d_k)` | | → | `key` | `(..., d_k, n)` | |
            | `value` | `(..., n, d_v)` | one for each key |
            → | `value` | `(..., d_v, n)` | one for each key |
            | returns | `(..., m, d_v)` | the output alone, one row for each query |
            → | returns | `(..., d_v, m)` | the output alone, one column for each query |
            \left(\frac{Q K^\top}{\sqrt{d_k}}\right) V .$$
            → \left(\frac{Q K^\top}{\sqrt{d_k}}\right) V ,$$⏎⏎where $Q$, $K$, $V$ and $U$ hold what
                comes in and what is returned as rows.
            Expect `tensor([[3.4320, 2.8719]])` → Expect 3.4320 and 2.8719, one below the other
            torch.tensor([[0.0, 1.0]]),⏎ → torch.tensor([[0.0, 1.0]]).mT,⏎
            torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]),⏎
            → torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]).mT,⏎
            torch.tensor([[4.0, 0.0], [2.0, 2.0], [4.0, 4.0]]),⏎
            → torch.tensor([[4.0, 0.0], [2.0, 2.0], [4.0, 4.0]]).mT,⏎
            `x`, `(..., n, d_model)`, are → `x`, `(..., d_model, n)`, are
            the output alone, `(..., n, d_v)` → the output alone, `(..., d_v, n)`
            Expect `torch.Size([2, 7, 3])` → Expect `torch.Size([2, 3, 7])`
            sequences = torch.ones(2, 7, 5) → sequences = torch.ones(2, 5, 7)
            `query @ key.mT` → `query.mT @ key`
            `key @ query.mT` → `key.mT @ query`
            `key.T` turns all axes around, the batch axes too. `key.mT` swaps
            → `query.T` turns all axes around, the batch axes too. `query.mT` swaps
            `key.transpose(-2, -1)` → `query.transpose(-2, -1)`
            the values that it mixes: `weights @ value`
            → the values that it mixes: `value @ weights.mT`
            `nn.Linear(d_model, d_k, bias=bias)` maps the last axis
            → `nn.Linear(d_model, d_k, bias=bias)` maps the last axis, which features are in `x.mT`,
        """,
        inputs="of every input but the mask",
    ),
)
