"""Chapter 12: right answers in steps, and wrong lines for them."""

import torch
from torch import nn
from torch.nn import functional as F

from attncourse.multihead import MultiHeadAttention


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff=None, activation=F.gelu, bias=True):
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.activation = activation
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x):
        return self.W_2(self.activation(self.W_1(x)))


class LayerNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gain, self.bias)


class EncoderInSteps(nn.Module):
    def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.pre_norm = pre_norm

    def forward(self, x, mask=None):
        read = self.norm_1(x) if self.pre_norm else x
        mixed = self.attention(read, mask=mask)
        x = x + self.dropout(mixed)
        x = x if self.pre_norm else self.norm_1(x)
        read = self.norm_2(x) if self.pre_norm else x
        changed = self.feed_forward(read)
        x = x + self.dropout(changed)
        return x if self.pre_norm else self.norm_2(x)


RIGHT_ANSWERS = {"transformer.EncoderBlock": [EncoderInSteps]}
ENCODER_MIXED_LINE = "mixed = self.attention(read, mask=mask)"

ENCODER_ATTENTION_LINE = "x = x + self.dropout(self.attention(self.norm_1(x), mask=mask))"
ENCODER_POST_NORM_LINE = "x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)))"
ENCODER_FEED_FORWARD_LINE = "return x + self.dropout(self.feed_forward(self.norm_2(x)))"
ENCODER_LAST_LINE = "return self.norm_2(x + self.dropout(self.feed_forward(x)))"
DECODER_PRE_NORM_LINE = "return x + self.dropout(branch(norm(x)))"
DECODER_POST_NORM_LINE = "return norm(x + self.dropout(branch(x)))"
DECODER_SELF_ATTENTION_LINE = "x, lambda x: self.self_attention(x, mask=mask), self.norm_1"
DECODER_CROSS_ATTENTION_LINE = "lambda x: self.cross_attention(x, memory, mask=memory_mask),"
DECODER_LAST_LINE = "return self.add(x, self.feed_forward, self.norm_3)"
DROPOUT_LINE = "self.dropout = nn.Dropout(dropout)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "transformer.EncoderBlock": (
        (ENCODER_MIXED_LINE, "mixed = self.attention(read)"),
        (ENCODER_MIXED_LINE, "mixed = self.attention(read, mask)"),
        (ENCODER_MIXED_LINE, "mixed = self.attention(read, x, mask=mask)"),
        (ENCODER_MIXED_LINE, "mixed = self.attention(x, mask=mask)"),
        (ENCODER_MIXED_LINE, "mixed = self.attention(read, mask=None if mask is None else ~mask)"),
        (
            ENCODER_MIXED_LINE,
            "mixed = self.attention(read, mask=None if mask is None else mask.mT)",
        ),
        (ENCODER_MIXED_LINE, "mixed = self.dropout(self.attention(read, mask=mask))"),
        ("x = x + self.dropout(mixed)", "x = self.dropout(mixed)"),
        ("x = x + self.dropout(mixed)", "x = x + mixed"),
        ("x = x + self.dropout(mixed)", "x = self.dropout(x + mixed)"),
        ("x = x + self.dropout(mixed)", "x += self.dropout(mixed)"),
        ("x = x + self.dropout(mixed)", "x = read + self.dropout(mixed)"),
        ("x = x + self.dropout(mixed)", "x = x + x + self.dropout(mixed)"),
        ("changed = self.feed_forward(read)", "changed = self.feed_forward(x)"),
        ("changed = self.feed_forward(read)", "changed = read"),
        ("changed = self.feed_forward(read)", "changed = read + self.feed_forward(read)"),
        ("x = x + self.dropout(changed)", "x = self.dropout(changed)"),
        ("x = x + self.dropout(changed)", "x = x + changed"),
        ("x = x + self.dropout(changed)", "x = mixed + self.dropout(changed)"),
        ("return x if self.pre_norm else self.norm_2(x)", "return self.norm_2(x)"),
        ("return x if self.pre_norm else self.norm_2(x)", "return x"),
        (
            "return x if self.pre_norm else self.norm_2(x)",
            "return x if self.pre_norm else self.norm_1(x)",
        ),
        (
            "read = self.norm_2(x) if self.pre_norm else x",
            "read = self.norm_1(x) if self.pre_norm else x",
        ),
        (ENCODER_ATTENTION_LINE, "x = x + self.dropout(self.attention(self.norm_1(x)))"),
        (ENCODER_ATTENTION_LINE, "x = x + self.dropout(self.attention(x, mask=mask))"),
        (ENCODER_ATTENTION_LINE, "x = self.dropout(self.attention(self.norm_1(x), mask=mask))"),
        (ENCODER_ATTENTION_LINE, "x += self.dropout(self.attention(self.norm_1(x), mask=mask))"),
        (ENCODER_ATTENTION_LINE, "x = x + self.attention(self.norm_1(x), mask=mask)"),
        (ENCODER_ATTENTION_LINE, "x = x + self.dropout(self.attention(self.norm_1(x), mask))"),
        (ENCODER_ATTENTION_LINE, "x = x + self.norm_1(self.dropout(self.attention(x, mask=mask)))"),
        (ENCODER_ATTENTION_LINE, "x = self.dropout(x + self.attention(self.norm_1(x), mask=mask))"),
        (ENCODER_ATTENTION_LINE, "x = self.norm_1(x) + self.dropout(self.attention(x, mask=mask))"),
        (ENCODER_FEED_FORWARD_LINE, "return x + self.dropout(self.feed_forward(self.norm_1(x)))"),
        (ENCODER_FEED_FORWARD_LINE, "return self.dropout(self.feed_forward(self.norm_2(x)))"),
        (ENCODER_FEED_FORWARD_LINE, "return x + self.dropout(self.feed_forward(x))"),
        (
            ENCODER_FEED_FORWARD_LINE,
            "return self.norm_2(x + self.dropout(self.feed_forward(self.norm_2(x))))",
        ),
        (ENCODER_FEED_FORWARD_LINE, "return x + self.feed_forward(self.norm_2(x))"),
        (ENCODER_POST_NORM_LINE, "x = x + self.norm_1(self.dropout(self.attention(x, mask=mask)))"),
        (ENCODER_POST_NORM_LINE, "x = self.norm_1(self.dropout(self.attention(x, mask=mask)))"),
        (ENCODER_POST_NORM_LINE, "x = self.norm_1(x + self.dropout(self.attention(x)))"),
        (ENCODER_LAST_LINE, "return x + self.norm_2(self.dropout(self.feed_forward(x)))"),
        (ENCODER_LAST_LINE, "return x + self.dropout(self.feed_forward(x))"),
        (ENCODER_LAST_LINE, "return self.norm_1(x + self.dropout(self.feed_forward(x)))"),
        (DROPOUT_LINE, "self.dropout = nn.Dropout(1 - dropout)"),
        ("self.norm_2 = LayerNorm(d_model)", "self.norm_2 = self.norm_1"),
        ("self.pre_norm = pre_norm", "self.pre_norm = not pre_norm"),
        ("self.feed_forward = FeedForward(d_model, d_ff)", "self.feed_forward = None"),
        ("if self.pre_norm:", "if not self.pre_norm:"),
    ),
    "transformer.DecoderBlock": (
        (DECODER_SELF_ATTENTION_LINE, "x, lambda x: self.self_attention(x), self.norm_1"),
        (
            DECODER_SELF_ATTENTION_LINE,
            "x, lambda x: self.self_attention(x, mask=memory_mask), self.norm_1",
        ),
        (
            DECODER_SELF_ATTENTION_LINE,
            "x, lambda x: self.self_attention(x, memory, mask=mask), self.norm_1",
        ),
        (
            DECODER_SELF_ATTENTION_LINE,
            "x, lambda x: self.cross_attention(x, mask=mask), self.norm_1",
        ),
        (DECODER_SELF_ATTENTION_LINE, "x, lambda x: self.self_attention(x, mask), self.norm_1"),
        (
            DECODER_SELF_ATTENTION_LINE,
            "x, lambda x: self.self_attention(x, mask=mask), self.norm_2",
        ),
        (DECODER_CROSS_ATTENTION_LINE, "lambda x: self.cross_attention(x, memory, mask=mask),"),
        (
            DECODER_CROSS_ATTENTION_LINE,
            "lambda x: self.cross_attention(memory, x, mask=memory_mask),",
        ),
        (DECODER_CROSS_ATTENTION_LINE, "lambda x: self.cross_attention(x, x, mask=memory_mask),"),
        (DECODER_CROSS_ATTENTION_LINE, "lambda x: self.cross_attention(x, memory),"),
        (
            DECODER_CROSS_ATTENTION_LINE,
            "lambda x: self.cross_attention(x, self.norm_2(memory), mask=memory_mask),",
        ),
        (
            DECODER_CROSS_ATTENTION_LINE,
            "lambda x: self.self_attention(x, memory, mask=memory_mask),",
        ),
        (
            DECODER_CROSS_ATTENTION_LINE,
            "lambda x: self.cross_attention(x, memory, x, mask=memory_mask),",
        ),
        ("self.norm_2,", "self.norm_1,"),
        (DECODER_LAST_LINE, "return self.add(x, self.feed_forward, self.norm_2)"),
        (DECODER_LAST_LINE, "return x"),
        (DECODER_LAST_LINE, "return x + self.dropout(self.feed_forward(x))"),
        (DECODER_LAST_LINE, "return self.norm_3(self.add(x, self.feed_forward, self.norm_3))"),
        (DECODER_PRE_NORM_LINE, "return norm(x) + self.dropout(branch(norm(x)))"),
        (DECODER_PRE_NORM_LINE, "return x + branch(norm(x))"),
        (DECODER_PRE_NORM_LINE, "return self.dropout(branch(norm(x)))"),
        (DECODER_PRE_NORM_LINE, "return x + norm(self.dropout(branch(x)))"),
        (DECODER_PRE_NORM_LINE, "return self.dropout(x + branch(norm(x)))"),
        (DECODER_PRE_NORM_LINE, "return x + self.dropout(branch(x))"),
        (DECODER_PRE_NORM_LINE, "return norm(x + self.dropout(branch(norm(x))))"),
        (DECODER_POST_NORM_LINE, "return x + norm(self.dropout(branch(x)))"),
        (DECODER_POST_NORM_LINE, "return norm(self.dropout(branch(x)))"),
        (DECODER_POST_NORM_LINE, "return x + self.dropout(branch(x))"),
        (DROPOUT_LINE, "self.dropout = nn.Dropout(1 - dropout)"),
        ("self.pre_norm = pre_norm", "self.pre_norm = True"),
        ("self.norm_3 = LayerNorm(d_model)", "self.norm_3 = self.norm_2"),
        (
            "self.feed_forward = FeedForward(d_model, d_ff)",
            "self.feed_forward = FeedForward(d_model)",
        ),
        ("if self.pre_norm:", "if not self.pre_norm:"),
    ),
    "transformer.FeedForward": (
        ("self.W_2 = nn.Linear(d_ff, d_model, bias=bias)", "self.W_2 = nn.Linear(d_ff, d_model)"),
        ("self.activation = activation", "self.activation = F.gelu"),
        (
            "d_ff = 4 * d_model if d_ff is None else d_ff",
            "d_ff = 2 * d_model if d_ff is None else d_ff",
        ),
        (
            "d_ff = 4 * d_model if d_ff is None else d_ff",
            "d_ff = 4 * d_model if d_ff is None else d_ff * d_model",
        ),
        (
            "self.activation = activation",
            "self.activation = lambda x: F.gelu(x, approximate='tanh')",
        ),
    ),
}
