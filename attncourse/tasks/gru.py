"""A GRU that several runs can share side by side, which torch's own cannot (``torch.vmap``)."""

import torch
from torch import Tensor, nn

from attncourse.support.shapes import Count, shaped


class GRU(nn.GRU):
    """One layer of torch's GRU, in one direction or both.

    Both directions take a step at once, and each reads its sequence without the padding.
    """

    @shaped
    def __init__(self, d_in: Count, d_hidden: Count, bidirectional: bool = False):
        super().__init__(d_in, d_hidden, batch_first=True, bidirectional=bidirectional)

    # pyrefly: ignore [bad-override]  no packed sequences, and lengths in their place
    def forward(
        self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the states ``(b, n, ways · d_hidden)``, and the last ``(ways, b, d_hidden)``.

        x: ``(b, n, d_in)``. state: where the ways start, 0 unless given. lengths: how many tokens
        of each sequence are no padding, ``(b,)``, all unless given; the states of padding mean
        nothing.
        """
        b, n, _ = x.shape
        lengths = torch.full((b,), n, device=x.device) if lengths is None else lengths
        ways, turn = [x], lengths[:, None]
        if self.bidirectional:  # turned twice, a sequence stands as before, and so does its padding
            turn = (lengths[:, None] - 1 - torch.arange(n, device=x.device)) % n  # (b, n)
            ways.append(at(x, turn))
        if state is None:
            state = x.new_zeros(len(ways), b, self.hidden_size)
        W_x, W_h, b_x, b_h = map(self.of_each_way, ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        read = torch.stack(ways).flatten(1, 2) @ W_x.mT + b_x.unsqueeze(1)
        read = read.unflatten(1, (b, n))  # (ways, b, n, 3 · d_hidden)
        states = Walk.apply(read, state, W_h, b_h)[0]  # (ways, b, n, d_hidden)
        ends = torch.stack([at(way, lengths[:, None] - 1)[:, 0] for way in states])
        back = [at(states[1], turn)] if self.bidirectional else []
        return torch.cat([states[0], *back], dim=-1), ends

    def of_each_way(self, name: str) -> Tensor:
        """Return a parameter of each direction, in a stack."""
        names = (f"{name}_l0", f"{name}_l0_reverse")[: 1 + self.bidirectional]
        return torch.stack([getattr(self, parameter) for parameter in names])


def at(x: Tensor, places: Tensor) -> Tensor:
    """Return the rows of x ``(b, n, d)`` at these places ``(b, m)``: ``(b, m, d)``."""
    return x.gather(1, places[..., None].expand(*places.shape, x.shape[-1]))


class Walk(torch.autograd.Function):
    """The states of a GRU, ``(ways, b, n, d)``, and their gradients.

    Of what was read ``(ways, b, n, 3 d)``, the first states ``(ways, b, d)``, and a step's weights
    and biases, ``(ways, 3 d, d)`` and ``(ways, 3 d)``. Inside, time stands in front.
    """

    @staticmethod
    def forward(read: Tensor, first: Tensor, W: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Return every state, and what the gradients need: the gates and the new values."""
        d, W, bias = first.shape[-1], W.mT.contiguous(), bias.unsqueeze(1)
        read = read.movedim(2, 0)  # (n, ways, b, 3 d)
        states, news, olds = (read.new_empty(*read.shape[:-1], d) for _ in range(3))
        gates = read.new_empty(*read.shape[:-1], 2 * d)
        state = first
        for t in range(len(read)):
            from_state = torch.baddbmm(bias, state, W)  # (ways, b, 3 d)
            torch.add(read[t, ..., : 2 * d], from_state[..., : 2 * d], out=gates[t])
            reset, keep = gates[t].sigmoid_().chunk(2, dim=-1)
            olds[t] = from_state[..., 2 * d :]
            torch.addcmul(read[t, ..., 2 * d :], reset, olds[t], out=news[t])
            state = torch.lerp(news[t].tanh_(), state, keep, out=states[t])
        return states.movedim(0, 2), gates, news, olds

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: tuple) -> None:
        """Keep what the gradients need."""
        _, first, W, _ = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(first, W, *output)

    @staticmethod
    def backward(ctx, slope: Tensor, *_):  # pyrefly: ignore [bad-override]  a gradient each result
        """Return the gradients, from the last step to the first."""
        first, W, states, gates, news, olds = ctx.saved_tensors
        states, slope = states.movedim(2, 0), slope.movedim(2, 0)
        reset, keep = gates.chunk(2, dim=-1)
        before = torch.cat([first[None], states[:-1]])  # (n, ways, b, d)
        # The slopes of a state by what it is made of, where all that follows leaves it alone.
        by_new = (1 - keep) * (1 - news * news)
        by_keep = (before - news) * keep * (1 - keep)
        by_reset = olds * reset * (1 - reset)
        d_own = torch.empty(*news.shape[:-1], 3 * news.shape[-1], dtype=W.dtype)
        d_read = torch.empty_like(d_own.movedim(0, 2), memory_format=torch.contiguous_format)
        by_time = d_read.movedim(2, 0)  # the same numbers: what is read has its time behind
        felt = torch.zeros_like(first)
        for t in reversed(range(len(states))):
            felt = felt + slope[t]
            new = felt * by_new[t]
            parts = d_own[t].chunk(3, dim=-1)
            torch.mul(new, by_reset[t], out=parts[0])
            torch.mul(felt, by_keep[t], out=parts[1])
            torch.mul(new, reset[t], out=parts[2])
            by_time[t, ..., 2 * new.shape[-1] :] = new
            felt = torch.baddbmm(felt * keep[t], d_own[t], W)
        by_time[..., : 2 * news.shape[-1]] = d_own[..., : 2 * news.shape[-1]]
        rows = d_own.movedim(0, 2).flatten(1, 2)  # (ways, b n, 3 d)
        d_W = rows.mT @ before.movedim(0, 2).flatten(1, 2)
        return d_read, felt, d_W, rows.sum(dim=1)

    @staticmethod
    def vmap(info, in_dims: tuple, *inputs: Tensor) -> tuple[tuple, tuple]:
        """Walk several runs at once: the runs' ways are more ways."""
        k = info.batch_size
        whole = [
            x.unsqueeze(0).expand(k, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(inputs, in_dims, strict=True)
        ]
        states, *saved = Walk.apply(*(x.flatten(0, 1) for x in whole))
        out = (states.unflatten(0, (k, -1)), *(x.unflatten(1, (k, -1)) for x in saved))
        return out, (0, 1, 1, 1)
