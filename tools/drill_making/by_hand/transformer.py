"""Chapter 12: wrong lines for right answers."""

E_ATTENTION = "x = x + self.dropout(self.attention(self.norm_1(x), mask=mask))"
E_POST = "x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)))"
E_FEED = "return x + self.dropout(self.feed_forward(self.norm_2(x)))"
E_LAST = "return self.norm_2(x + self.dropout(self.feed_forward(x)))"
D_PRE = "return x + self.dropout(branch(norm(x)))"
D_POST = "return norm(x + self.dropout(branch(x)))"
D_SELF = "x, lambda x: self.self_attention(x, mask=mask), self.norm_1"
D_CROSS = "lambda x: self.cross_attention(x, memory, mask=memory_mask),"
D_LAST = "return self.add(x, self.feed_forward, self.norm_3)"
DROPOUT = "self.dropout = nn.Dropout(dropout)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "transformer.EncoderBlock": (
        (E_ATTENTION, "x = x + self.dropout(self.attention(self.norm_1(x)))"),
        (E_ATTENTION, "x = x + self.dropout(self.attention(x, mask=mask))"),
        (E_ATTENTION, "x = self.dropout(self.attention(self.norm_1(x), mask=mask))"),
        (E_ATTENTION, "x += self.dropout(self.attention(self.norm_1(x), mask=mask))"),
        (E_ATTENTION, "x = x + self.attention(self.norm_1(x), mask=mask)"),
        (E_ATTENTION, "x = x + self.dropout(self.attention(self.norm_1(x), mask))"),
        (E_ATTENTION, "x = x + self.norm_1(self.dropout(self.attention(x, mask=mask)))"),
        (E_ATTENTION, "x = self.dropout(x + self.attention(self.norm_1(x), mask=mask))"),
        (E_ATTENTION, "x = self.norm_1(x) + self.dropout(self.attention(x, mask=mask))"),
        (E_FEED, "return x + self.dropout(self.feed_forward(self.norm_1(x)))"),
        (E_FEED, "return self.dropout(self.feed_forward(self.norm_2(x)))"),
        (E_FEED, "return x + self.dropout(self.feed_forward(x))"),
        (E_FEED, "return self.norm_2(x + self.dropout(self.feed_forward(self.norm_2(x))))"),
        (E_FEED, "return x + self.feed_forward(self.norm_2(x))"),
        (E_POST, "x = x + self.norm_1(self.dropout(self.attention(x, mask=mask)))"),
        (E_POST, "x = self.norm_1(self.dropout(self.attention(x, mask=mask)))"),
        (E_POST, "x = self.norm_1(x + self.dropout(self.attention(x)))"),
        (E_LAST, "return x + self.norm_2(self.dropout(self.feed_forward(x)))"),
        (E_LAST, "return x + self.dropout(self.feed_forward(x))"),
        (E_LAST, "return self.norm_1(x + self.dropout(self.feed_forward(x)))"),
        (DROPOUT, "self.dropout = nn.Dropout(1 - dropout)"),
        ("self.norm_2 = LayerNorm(d_model)", "self.norm_2 = self.norm_1"),
        ("self.pre_norm = pre_norm", "self.pre_norm = not pre_norm"),
        ("self.feed_forward = FeedForward(d_model, d_ff)", "self.feed_forward = None"),
        ("if self.pre_norm:", "if not self.pre_norm:"),
    ),
    "transformer.DecoderBlock": (
        (D_SELF, "x, lambda x: self.self_attention(x), self.norm_1"),
        (D_SELF, "x, lambda x: self.self_attention(x, mask=memory_mask), self.norm_1"),
        (D_SELF, "x, lambda x: self.self_attention(x, memory, mask=mask), self.norm_1"),
        (D_SELF, "x, lambda x: self.cross_attention(x, mask=mask), self.norm_1"),
        (D_SELF, "x, lambda x: self.self_attention(x, mask), self.norm_1"),
        (D_SELF, "x, lambda x: self.self_attention(x, mask=mask), self.norm_2"),
        (D_CROSS, "lambda x: self.cross_attention(x, memory, mask=mask),"),
        (D_CROSS, "lambda x: self.cross_attention(memory, x, mask=memory_mask),"),
        (D_CROSS, "lambda x: self.cross_attention(x, x, mask=memory_mask),"),
        (D_CROSS, "lambda x: self.cross_attention(x, memory),"),
        (D_CROSS, "lambda x: self.cross_attention(x, self.norm_2(memory), mask=memory_mask),"),
        (D_CROSS, "lambda x: self.self_attention(x, memory, mask=memory_mask),"),
        (D_CROSS, "lambda x: self.cross_attention(x, memory, x, mask=memory_mask),"),
        ("self.norm_2,", "self.norm_1,"),
        (D_LAST, "return self.add(x, self.feed_forward, self.norm_2)"),
        (D_LAST, "return x"),
        (D_LAST, "return x + self.dropout(self.feed_forward(x))"),
        (D_LAST, "return self.norm_3(self.add(x, self.feed_forward, self.norm_3))"),
        (D_PRE, "return norm(x) + self.dropout(branch(norm(x)))"),
        (D_PRE, "return x + branch(norm(x))"),
        (D_PRE, "return self.dropout(branch(norm(x)))"),
        (D_PRE, "return x + norm(self.dropout(branch(x)))"),
        (D_PRE, "return self.dropout(x + branch(norm(x)))"),
        (D_PRE, "return x + self.dropout(branch(x))"),
        (D_PRE, "return norm(x + self.dropout(branch(norm(x))))"),
        (D_POST, "return x + norm(self.dropout(branch(x)))"),
        (D_POST, "return norm(self.dropout(branch(x)))"),
        (D_POST, "return x + self.dropout(branch(x))"),
        (DROPOUT, "self.dropout = nn.Dropout(1 - dropout)"),
        ("self.pre_norm = pre_norm", "self.pre_norm = True"),
        ("self.norm_3 = LayerNorm(d_model)", "self.norm_3 = self.norm_2"),
        (
            "self.feed_forward = FeedForward(d_model, d_ff)",
            "self.feed_forward = FeedForward(d_model)",
        ),
        ("if self.pre_norm:", "if not self.pre_norm:"),
    ),
}
