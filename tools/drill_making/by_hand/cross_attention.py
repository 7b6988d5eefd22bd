"""Chapter 8: wrong lines for right answers."""

READ = "self.W_q(x), self.W_k(y), self.W_v(y), mask"
WEIGHTS = "return attention_weights(self.W_q(x), self.W_k(y), mask)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "cross_attention.CrossAttention": (
        (READ, "self.W_q(x), self.W_k(y), y, mask"),
        (READ, "self.W_q(x), self.W_v(y), self.W_k(y), mask"),
        (READ, "self.W_k(x), self.W_q(y), self.W_v(y), mask"),
        (READ, "self.W_q(x), self.W_k(y), self.W_v(x), mask"),
        (READ, "self.W_q(x), self.W_k(y), self.W_k(y), mask"),
        (READ, "self.W_q(x), self.W_k(y), self.W_v(y), ~mask"),
        (WEIGHTS, "return attention_weights(self.W_q(x), self.W_k(y))"),
        (WEIGHTS, "return attention_weights(self.W_q(x), self.W_k(y), mask).mT"),
        (WEIGHTS, "return attention_weights(self.W_k(y), self.W_q(x), mask)"),
        (WEIGHTS, "return attention_weights(self.W_q(x), self.W_k(y), mask) @ self.W_v(y)"),
        (WEIGHTS, "return attention_weights(self.W_q(x), self.W_k(x), mask)"),
    ),
}
