"""Chapter 18: right answers in steps, and wrong lines for them."""

from itertools import pairwise


def merge_in_steps(symbols, ranks):
    pieces = list(symbols)
    while True:
        known = [pair for pair in pairwise(pieces) if pair in ranks]
        if not known:
            return pieces
        best = min(known, key=ranks.get)
        i = 0
        while i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == best:
                pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
            i += 1


def pairs_in_steps(weight, n_heads):
    n_rows, _ = weight.shape
    if n_rows % n_heads or n_rows // n_heads % 2:
        raise ValueError(f"{n_rows} rows make no {n_heads} heads of even width")
    half = n_rows // n_heads // 2
    order = []
    for h in range(n_heads):
        first = 2 * half * h
        for i in range(half):
            order += [first + i, first + half + i]
    return weight[order]


RIGHT_ANSWERS = {"llama.merge_pairs": [merge_in_steps], "llama.pairs_from_halves": [pairs_in_steps]}
ROTATED_QUERY_LINE = "query = apply_rope(query, positions, self.base)"
ROTATED_KEY_LINE = "key = apply_rope(key, positions, self.base)"
CAUSAL_MASK_LINE = "mask = causal_mask(n) if mask is None else mask"
LLAMA_MIXED_LINE = "mixed = scaled_dot_product_attention(query, key, value, mask | empty)"
OUTPUT_LINE = "return layers.W_o(merge_heads(mixed.masked_fill(empty, 0)))"
ATTENTION_BRANCH_LINE = "x = x + self.attend(self.norm_1(x), mask, positions)"
FEED_FORWARD_LINE = "return x + self.feed_forward(self.norm_2(x))"
ROW_ORDER_LINE = "order += [first + i, first + half + i]"
BEST_PAIR_LINE = "best = min(known, key=ranks.get)"
JOINED_PAIR_LINE = "pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "llama.LlamaBlock": (
        (ROTATED_QUERY_LINE, "query = apply_rope(query, -positions, self.base)"),
        (ROTATED_QUERY_LINE, "query = apply_rope(key, positions, self.base)"),
        (ROTATED_KEY_LINE, "value = apply_rope(value, positions, self.base)"),
        (ROTATED_KEY_LINE, "key = key"),
        (
            "value = split_heads(layers.W_v(x), self.n_kv_heads)",
            "value = split_heads(layers.W_k(x), self.n_kv_heads)",
        ),
        (
            "value = split_heads(layers.W_v(x), self.n_kv_heads)",
            "value = apply_rope(split_heads(layers.W_v(x), self.n_kv_heads), positions)",
        ),
        (
            "positions = torch.arange(n) if positions is None else positions",
            "positions = torch.arange(n)",
        ),
        (
            "part.repeat_interleave(group, dim=-3) for part in (key, value)",
            "part.tile(group, 1, 1) for part in (key, value)",
        ),
        (
            "part.repeat_interleave(group, dim=-3) for part in (key, value)",
            "part[..., :1, :, :] for part in (key, value)",
        ),
        (CAUSAL_MASK_LINE, "mask = causal_mask(n)"),
        (CAUSAL_MASK_LINE, "mask = torch.ones(n, n, dtype=torch.bool) if mask is None else mask"),
        (CAUSAL_MASK_LINE, "mask = causal_mask(n) if mask is None else mask & causal_mask(n)"),
        (CAUSAL_MASK_LINE, "mask = causal_mask(n) if mask is None else ~mask"),
        (CAUSAL_MASK_LINE, "mask = causal_mask(n) if mask is None else mask.mT"),
        (CAUSAL_MASK_LINE, "mask = causal_mask(n).tril(-1) if mask is None else mask"),
        (LLAMA_MIXED_LINE, "mixed = scaled_dot_product_attention(query, key, value, mask)"),
        (LLAMA_MIXED_LINE, "mixed = scaled_dot_product_attention(key, query, value, mask | empty)"),
        (OUTPUT_LINE, "return layers.W_o(merge_heads(mixed))"),
        (OUTPUT_LINE, "return merge_heads(mixed.masked_fill(empty, 0))"),
        (OUTPUT_LINE, "return layers.W_o(mixed.masked_fill(empty, 0).reshape(x.shape))"),
        (ATTENTION_BRANCH_LINE, "x = x + self.attend(x, mask, positions)"),
        (ATTENTION_BRANCH_LINE, "x += self.attend(self.norm_1(x), mask, positions)"),
        (ATTENTION_BRANCH_LINE, "x = self.attend(self.norm_1(x), mask, positions)"),
        (
            ATTENTION_BRANCH_LINE,
            "x = self.norm_1(x) + self.attend(self.norm_1(x), mask, positions)",
        ),
        (ATTENTION_BRANCH_LINE, "x = x + self.norm_1(self.attend(x, mask, positions))"),
        (ATTENTION_BRANCH_LINE, "x = self.norm_1(x + self.attend(x, mask, positions))"),
        (FEED_FORWARD_LINE, "return x + self.feed_forward(self.norm_1(x))"),
        (FEED_FORWARD_LINE, "return x + self.norm_2(self.feed_forward(x))"),
        (FEED_FORWARD_LINE, "return self.norm_2(x + self.feed_forward(x))"),
        (FEED_FORWARD_LINE, "return self.feed_forward(self.norm_2(x))"),
        (FEED_FORWARD_LINE, "return x"),
    ),
    "llama.merge_pairs": (
        (BEST_PAIR_LINE, "best = max(known, key=ranks.get)"),
        (BEST_PAIR_LINE, "best = known[0]"),
        (BEST_PAIR_LINE, "best = min(known)"),
        (BEST_PAIR_LINE, "best = max(known, key=known.count)"),
        (BEST_PAIR_LINE, 'best = max(known, key=lambda pair: len("".join(pair)))'),
        (JOINED_PAIR_LINE, "pieces[i : i + 2] = [pieces[i + 1] + pieces[i]]"),
        (JOINED_PAIR_LINE, 'pieces[i : i + 2] = [f"{pieces[i]} {pieces[i + 1]}"]'),
        (JOINED_PAIR_LINE, "pieces[i : i + 3] = [pieces[i] + pieces[i + 1]]"),
        (
            "if (pieces[i], pieces[i + 1]) == best:",
            'if pieces[i] + pieces[i + 1] == "".join(best):',
        ),
        ("if (pieces[i], pieces[i + 1]) == best:", "if (pieces[i], pieces[i + 1]) in ranks:"),
        ("pieces = list(symbols)", "pieces = symbols"),
        ("pieces = list(symbols)", "pieces = sorted(set(symbols))"),
        (
            "known = [pair for pair in pairwise(pieces) if pair in ranks]",
            "known = [pair for pair in pairwise(pieces) if ranks.get(pair)]",
        ),
        ("return pieces", 'return "".join(pieces)'),
        ("return pieces", "return tuple(pieces)"),
        ("lowest = min(known, key=ranks.get)", "lowest = max(known, key=ranks.get)"),
        ("lowest = min(known, key=ranks.get)", "lowest = known[0]"),
        ("lowest = min(known, key=ranks.get)", "lowest = known[-1]"),
        ("lowest = min(known, key=ranks.get)", "lowest = max(known, key=known.count)"),
        ("lowest = min(known, key=ranks.get)", "lowest = min(known)"),
        (
            "joined.append(symbols[i] + symbols[i + 1])",
            "joined.append(symbols[i + 1] + symbols[i])",
        ),
        ("i += 2", "i += 1"),
        ("while i < len(symbols):", "while i < len(symbols) - 1:"),
        ("symbols = joined", "return joined"),
        ("symbols = list(symbols)", "symbols = list(dict.fromkeys(symbols))"),
        (
            "known = [pair for pair in pairwise(symbols) if pair in ranks]",
            "known = [pair for pair in pairwise(symbols) if ranks.get(pair)]",
        ),
        (
            "known = [pair for pair in pairwise(symbols) if pair in ranks]",
            "known = [pair for pair in ranks if pair in list(pairwise(symbols))]",
        ),
        ("for pair in sorted(ranks, key=ranks.get):", "for pair in ranks:"),
        (
            "for pair in sorted(ranks, key=ranks.get):",
            "for pair in sorted(ranks, key=ranks.get, reverse=True):",
        ),
        ("for pair in sorted(ranks, key=ranks.get):", "for pair in sorted(ranks):"),
        ("_, i = min(found)", "_, i = max(found)"),
        ("_, i = min(found)", "_, i = found[-1]"),
    ),
    "llama.pairs_from_halves": (
        (ROW_ORDER_LINE, "order += [first + half + i, first + i]"),
        (ROW_ORDER_LINE, "order += [first + i, first + 2 * half - 1 - i]"),
        ("first = 2 * half * h", "first = 0"),
        (
            "halves = weight.reshape(n_heads, 2, -1, d_in)",
            "halves = weight.reshape(n_heads, 2, -1, d_in).flip(1)",
        ),
        (
            "halves = weight.reshape(n_heads, 2, -1, d_in)",
            "halves = weight.reshape(1, 2, -1, d_in)",
        ),
        (
            "halves = weight.reshape(n_heads, 2, -1, d_in)",
            "halves = weight.float().reshape(n_heads, 2, -1, d_in)",
        ),
        (
            "return halves.transpose(1, 2).reshape(n_rows, d_in)",
            "return halves.transpose(0, 2).reshape(n_rows, d_in)",
        ),
        (
            "return halves.transpose(1, 2).reshape(n_rows, d_in)",
            "return halves.transpose(1, 2).reshape(n_heads, -1, d_in)",
        ),
        (
            "return halves.transpose(1, 2).reshape(n_rows, d_in)",
            "return halves.transpose(1, 2).reshape(n_rows, d_in).T",
        ),
    ),
}
