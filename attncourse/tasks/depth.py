"""Effects of depth on untrained blocks: tokens that become alike, gradients that grow or shrink.

Sources: Dong, Cordonnier and Loukas (2021), Attention is not all you need; Xiong et al. (2020), On
Layer Normalization in the Transformer Architecture.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attncourse.multihead import MultiHeadAttention
from attncourse.tasks.adam import Adam
from attncourse.transformer import EncoderBlock, FeedForward, LayerNorm


def size(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """Return √(‖X‖₁ ‖X‖∞), the geometric mean of |X|'s largest column sum and largest row sum."""
    columns, rows = X.abs().sum(-2).amax(-1), X.abs().sum(-1).amax(-1)
    return (columns * rows).sqrt()


def relative_residual(X: Float[Tensor, "*batch n d"], steps: int = 100) -> Float[Tensor, "*batch"]:
    """Return how far the tokens are from all being one vector x: min ‖X − 1xᵀ‖ / ‖X‖, from 0 to 1.

    The norm is ``size``. x is sought by Adam on the logarithm, from the mean token on; of all that
    it tries the best one counts.
    """
    X = X.detach().double()
    mean = X.mean(-2, keepdim=True)
    rest = X - mean
    scale = size(rest)[..., None, None]
    rest = torch.where(scale > 0, rest / scale, 1.0)  # of size 1: one step width fits all
    shift = torch.zeros_like(mean, requires_grad=True)
    adam = Adam([shift], 0.003)
    least = size(rest)
    for step in range(steps):
        distance = size(rest - shift)
        least = torch.minimum(least, distance.detach())
        adam.zero_grad()
        distance.clamp(min=1e-30).log().sum().backward()
        adam.step(1 - step / steps)
    return (least * scale[..., 0, 0] / size(X)).clamp(max=1)


@torch.no_grad()
def tokens_by_depth(
    skip: bool, feed: bool, *, depth: int = 12, n: int = 16, d: int = 32, seed: int = 0
) -> Float[Tensor, "layers n d"]:
    """Return tokens after each layer of a new stack without norms: ``(depth + 1, n, d)``.

    skip: whether a branch is added to what it reads. feed: whether there are feed-forward layers.
    """
    torch.manual_seed(seed)
    x = torch.randn(n, d).double()
    seen = [x]
    for _ in range(depth):
        branches = [xavier(MultiHeadAttention(d, 4)), xavier(FeedForward(d))]
        for branch in branches[: 1 + feed]:
            x = x + branch.double()(x) if skip else branch.double()(x)
        seen.append(x)
    return torch.stack(seen)


def xavier(module: nn.Module) -> nn.Module:
    """Return the module with Xavier's weights, and biases of 0."""
    for name, parameter in module.named_parameters():
        if parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return module


def gradients_by_depth(
    pre_norm: bool, *, depth: int = 12, n: int = 16, d: int = 32, batch: int = 8, seed: int = 0
) -> Float[Tensor, "layers"]:
    """Return the norm of the gradient of every block's weight W_2, at the start, ``(depth,)``.

    Weights begin as Xavier's; a linear read-out guesses one of 10 random classes for each token.
    """
    torch.manual_seed(seed)
    blocks = [EncoderBlock(d, 4, pre_norm=pre_norm) for _ in range(depth)]
    last = LayerNorm(d) if pre_norm else nn.Identity()
    model = xavier(nn.Sequential(*blocks, last, nn.Linear(d, 10)))
    logits = model(torch.randn(batch, n, d))
    goal = torch.randint(10, (batch, n))
    nn.functional.cross_entropy(logits.flatten(0, 1), goal.flatten()).backward()
    slopes = (block.feed_forward.W_2.weight.grad for block in blocks)
    return torch.stack([slope.norm() for slope in slopes if slope is not None])
