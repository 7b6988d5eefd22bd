"""Chapter 20: right answers in steps, and wrong lines for them."""

import torch


def quantized_in_steps(x, bits, block):
    if bits not in range(2, 9) or x.shape[-1] % block:
        raise ValueError(f"{bits} bits in blocks of {block}")
    blocks = x.reshape(*x.shape[:-1], -1, block)
    least, greatest = torch.aminmax(blocks, dim=-1, keepdim=True)
    scale = (greatest - least) / (2**bits - 1)
    steps = (blocks - least) / torch.where(scale == 0, 1, scale)
    codes = steps.round().to(torch.uint8).reshape(x.shape)
    return codes, scale.squeeze(-1), least.squeeze(-1)


RIGHT_ANSWERS = {"serving.quantize": [quantized_in_steps]}
BOUNDS_LINE = "if bits not in range(2, 9) or x.shape[-1] % block:"
CODES_LINE = "codes = steps.round().to(torch.uint8).reshape(x.shape)"
STEPS_LINE = "steps = (blocks - least) / torch.where(scale == 0, 1, scale)"
BATCH_INPUTS_LINE = "return (ids, positions.clamp(min=0), causal_mask(n) & real[:, None, :])"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "serving.top_k_gate": (
        (
            "weights = logits.gather(-1, chosen).softmax(-1)",
            "weights = logits.softmax(-1).gather(-1, chosen)",
        ),
        (
            "chosen = logits.argsort(dim=-1, descending=True, stable=True)[..., :k]",
            "chosen = logits.abs().argsort(dim=-1, descending=True, stable=True)[..., :k]",
        ),
        (
            "chosen = logits.argsort(dim=-1, descending=True, stable=True)[..., :k]",
            "chosen = logits.argsort(dim=-1, stable=True)[..., -k:]",
        ),
        (
            "weights = logits.gather(-1, chosen).softmax(-1)",
            "weights = torch.full_like(logits.gather(-1, chosen), 1 / k)",
        ),
    ),
    "serving.pad_left": (
        ("real = positions >= 0", "real = positions > 0"),
        ("real = positions >= 0", "real = ids != pad"),
        (BATCH_INPUTS_LINE, "return (ids, positions.clamp(min=0), causal_mask(n) & real[0])"),
        (
            BATCH_INPUTS_LINE,
            "return (ids, positions.clamp(min=0), real[:, None, :].expand(-1, n, -1))",
        ),
        (
            BATCH_INPUTS_LINE,
            "return (ids, positions.clamp(min=0), causal_mask(n).expand(len(ids), n, n))",
        ),
        (BATCH_INPUTS_LINE, "return (ids, positions, causal_mask(n) & real[:, None, :])"),
        (BATCH_INPUTS_LINE, "return (ids, positions.abs(), causal_mask(n) & real[:, None, :])"),
        (
            BATCH_INPUTS_LINE,
            "return (ids, positions.clamp(min=0), causal_mask(n).mT & real[:, None, :])",
        ),
        (
            BATCH_INPUTS_LINE,
            "return (ids, positions.clamp(min=0), ~(causal_mask(n) & real[:, None, :]))",
        ),
        (
            "positions = torch.arange(n) - (n - lengths)[:, None]",
            "positions = torch.arange(n) - (n - lengths)[:, None] + 1",
        ),
        ("n = int(lengths.max())", "n = int(lengths.max()) + 1"),
        ("start = n - len(row)", "start = 0"),
        ("mask[i, start + j, start : start + j + 1] = True", "mask[i, start + j, start:] = True"),
        (
            "mask[i, start + j, start : start + j + 1] = True",
            "mask[i, start + j, start : start + j] = True",
        ),
        (
            "mask[i, start + j, start : start + j + 1] = True",
            "mask[i, start + j, : start + j + 1] = True",
        ),
    ),
    "serving.quantize": (
        (BOUNDS_LINE, "if bits not in range(2, 8) or x.shape[-1] % block:"),
        (BOUNDS_LINE, "if bits not in range(1, 9) or x.shape[-1] % block:"),
        (BOUNDS_LINE, "if bits not in range(2, 9):"),
        (CODES_LINE, "codes = steps.ceil().to(torch.uint8).reshape(x.shape)"),
        (CODES_LINE, "codes = steps.to(torch.uint8).reshape(x.shape)"),
        (CODES_LINE, "codes = steps.round().to(torch.int8).reshape(x.shape)"),
        (CODES_LINE, "codes = steps.round().reshape(x.shape)"),
        (STEPS_LINE, "steps = (blocks - least) / scale"),
        (STEPS_LINE, "steps = (greatest - blocks) / torch.where(scale == 0, 1, scale)"),
        (STEPS_LINE, "steps = blocks / torch.where(scale == 0, 1, scale)"),
        ("scale = (greatest - least) / (2**bits - 1)", "scale = (greatest - least) / 2**bits"),
        (
            "return (codes, scale.squeeze(-1), least.squeeze(-1))",
            "return (codes, scale.squeeze(-1), -(least / scale).squeeze(-1))",
        ),
        ("minimum = blocks.amin(-1)", "minimum = torch.zeros_like(blocks.amin(-1))"),
        ("minimum = blocks.amin(-1)", "minimum = blocks.amin(-1).clamp(max=0)"),
        (
            "scale = (blocks.amax(-1) - minimum) / (2**bits - 1)",
            "scale = (blocks.amax(-1) - minimum) / 2**bits",
        ),
        (
            "scale = (blocks.amax(-1) - minimum) / (2**bits - 1)",
            "scale = blocks.amax(-1) - minimum",
        ),
        (
            "scale = (blocks.amax(-1) - minimum) / (2**bits - 1)",
            "scale = blocks.amax(-1) / (2**bits - 1)",
        ),
        ("step = scale.where(scale > 0, 1)", "step = scale"),
        ("step = scale.where(scale > 0, 1)", "step = scale + 1e-3"),
        (
            "codes = ((blocks - minimum[..., None]) / step[..., None]).round()",
            "codes = ((blocks - minimum[..., None]) / step[..., None]).floor()",
        ),
        (
            "codes = ((blocks - minimum[..., None]) / step[..., None]).round()",
            "codes = (blocks - minimum[..., None]) / step[..., None]",
        ),
        (
            "codes = ((blocks - minimum[..., None]) / step[..., None]).round()",
            "codes = ((blocks - minimum[..., None]) / step[..., None] + 0.5).floor()",
        ),
        (
            "codes = ((blocks - minimum[..., None]) / step[..., None]).round()",
            "codes = (blocks / step[..., None]).round()",
        ),
        (
            "codes = ((blocks - minimum[..., None]) / step[..., None]).round()",
            "codes = ((blocks - minimum[..., None]) * step[..., None]).round()",
        ),
        ("blocks = x.unflatten(-1, (-1, block))", "blocks = x.unflatten(-1, (block, -1)).mT"),
        (
            "return (codes.flatten(-2).to(torch.uint8), scale, minimum)",
            "return (codes.flatten(-2).to(torch.uint8), scale, blocks.amax(-1))",
        ),
    ),
}
