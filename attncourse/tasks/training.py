"""What a page asks of the models that it trains."""

from torch import nn


def count_parameters(module: nn.Module) -> int:
    """How many numbers a module learns; one that several layers share counts once."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"module: expected an nn.Module, got {type(module).__name__}")
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
