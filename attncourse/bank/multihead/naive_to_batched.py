"""The exercise ``naive_to_batched``: the weights of separate heads in the layers of one module."""

from copy import deepcopy
from itertools import combinations, permutations, product

import torch

from attncourse import multihead
from attncourse.bank.multihead.cases import layer_weights
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.modules import State, tensor, uniform_values
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

NAMES = ("W_q", "W_k", "W_v", "W_o")

WEIGHTS = tuple(f"{name}.weight" for name in NAMES[:3])
BIASES = tuple(f"{name}.bias" for name in NAMES[:3])


def naive_state(rng: Rng, d_model: int, n_heads: int, bias: bool) -> State:
    """Return the state of a ``MultiHeadNaive``: float32, like a module as it is built."""
    d_head = d_model // n_heads
    state = layer_weights(rng, bias, W_o=(d_model, d_model))
    for i in range(n_heads):
        parts = layer_weights(rng, bias, **{name: (d_head, d_model) for name in NAMES[:3]})
        state |= {f"heads.{i}.{name}": w for name, w in parts.items()}
    return {name: w.float() for name, w in state.items()}


def naive_case(
    rng: Rng,
    d_model: int,
    n_heads: int,
    names: tuple[str, ...] = (),
    *,
    on: tuple[int, ...] = (),
    bias: bool = True,
    note: str = "",
) -> Case:
    """Return a case of a naive module: its parameters' names, or its output on a shape.

    Without either, the tensors that the result shares with naive.
    """
    use, arguments = callers.shared_by_made, {}
    if names:
        use, arguments = callers.parameters_made, {"names": names}
    elif on:
        use, arguments = (
            callers.output_of_made,
            {"inputs": ("x",), "x": uniform_values(rng, *on).float()},
        )
    built = f"MultiHeadNaive({d_model}, {n_heads}{'' if bias else ', bias=False'})"
    shown = f"naive_to_batched(naive), naive = {built}"
    state = naive_state(rng, d_model, n_heads, bias)
    return Case(kwargs=arguments | state, use=use, note=note, shown=shown)


# Whole numbers: two heads of one feature. Their rows are to stand below one another.
SMALL_NAIVE = Case(
    kwargs={"names": WEIGHTS, "W_o.weight": tensor([[1, 2], [3, 4]], torch.float32)}
    | {
        f"heads.{i}.{name}": tensor([[3 * i + k, 3 * i + k + 1]], torch.float32)
        for i in range(2)
        for k, name in enumerate(WEIGHTS)
    },
    use=callers.parameters_made,
    shown="naive_to_batched(naive), naive = MultiHeadNaive(2, 2, bias=False)",
)

# --- decisions and mistakes ----------------------------------------------------------------------


def interleave_rows(tensors):
    """Return row 0 of every head, then row 1 of every head, and so on."""
    return torch.stack(tensors, dim=1).flatten(0, 1)


def copy_weight_only(layer, naive_layer):
    layer.weight.copy_(naive_layer.weight)


def copy_weight_and_bias(layer, naive_layer):
    layer.load_state_dict(naive_layer.state_dict(), strict=False)


def copy_transposed(layer, naive_layer):
    copy_weight_and_bias(layer, naive_layer)
    layer.weight.copy_(naive_layer.weight.T)


@composition
def compose_naive_to_batched(
    heads=lambda naive: list(naive.heads),
    number=lambda naive: len(naive.heads),
    biased=lambda naive: naive.W_o.bias is not None,
    weights=torch.cat,
    biases=torch.cat,
    origin=lambda name, part: name,
    copied_names=NAMES[:3],
    W_o=copy_weight_and_bias,
    finish=lambda made, naive: made,
):
    """Return a ``naive_to_batched`` made of decisions; ``origin`` names the layer to copy from."""

    def naive_to_batched(naive):
        bias = biased(naive)
        made = multihead.MultiHeadAttention(naive.W_o.in_features, number(naive), bias=bias)
        joins = {"weight": weights, "bias": bias and naive.W_o.bias is not None and biases}
        with torch.no_grad():
            for name, (part, join) in product(copied_names, joins.items()):
                if join:
                    parts_of_heads = [
                        getattr(getattr(head, origin(name, part)), part) for head in heads(naive)
                    ]
                    getattr(getattr(made, name), part).copy_(join(parts_of_heads))
            if W_o is not None:
                W_o(made.W_o, naive.W_o)
        return finish(made, naive)

    return naive_to_batched


def share_W_o(made, naive):
    made.W_o = naive.W_o
    return made


def take_from_other_layers(choice: tuple) -> dict:
    """Return the option that copies from other projections: which from which, what kind."""
    origins, parts = choice
    return {"origin": lambda name, part: dict(origins).get(name, name) if part in parts else name}


ONE_FROM_ONE = [(pair,) for pair in permutations(NAMES[:3], 2)]
TWO_EXCHANGED = [((a, b), (b, a)) for a, b in combinations(NAMES[:3], 2)]
ALL_FROM_ONE = [tuple((b, a) for b in NAMES[:3] if b != a) for a in NAMES[:3]]
ORIGINS = [*product(ONE_FROM_ONE + TWO_EXCHANGED + ALL_FROM_ONE, (("weight",), ("weight", "bias")))]

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    multihead.naive_to_batched,
    section="Chapter 9, “Both are the same”",
    difficulty=3,
    minutes=20,
    criteria=(
        Criterion("W_q, W_k and W_v hold the heads' weights", 3).on(
            lambda rng: [
                SMALL_NAIVE,
                naive_case(rng, 12, 3, WEIGHTS),
                naive_case(rng, 8, 4, WEIGHTS, bias=False),
            ]
        ),
        Criterion("their biases hold the heads' biases", 1).on(
            lambda rng: [naive_case(rng, 12, 3, BIASES), naive_case(rng, 10, 2, BIASES)]
        ),
        Criterion("W_o is the one of naive", 1).on(
            lambda rng: [
                naive_case(rng, 12, 3, ("W_o.weight", "W_o.bias")),
                naive_case(rng, 8, 4, ("W_o.weight",), bias=False),
            ]
        ),
        Criterion("the module returns what naive returns", 2).on(
            lambda rng: [
                naive_case(rng, 12, 3, on=(7, 12)),
                naive_case(rng, 8, 4, on=(4, 5, 8), note="a batch of 4"),
                naive_case(rng, 10, 2, on=(3, 10), bias=False),
                once_more(SMALL_NAIVE),
            ]
        ),
        Criterion("the module has weights of its own; one head", 1).on(
            lambda rng: [
                naive_case(rng, 5, 1, WEIGHTS, note="one head"),
                naive_case(rng, 12, 3, note="tensors of naive that live on in it"),
                naive_case(rng, 5, 1, note="one head"),
            ]
        ),
        unchanged(),
    ),
    mistakes=(
        *made(
            compose_naive_to_batched,
            mistake("""the heads' weights side by side
                You join the weights along their second axis, or transpose them first. `nn.Linear`
                stores (out, in), and what stands side by side in the *output* is rows of the
                weight: join them as they are, `torch.cat(weights, dim=0)`.""")
            .by(weights=lambda tensors: torch.cat(tensors, dim=1))
            .by(weights=lambda tensors: torch.cat([w.T for w in tensors], dim=1)),
            mistake("""the heads are not each in their place
                Head i uses the i-th run of features: all rows of head 0 come first, then those of
                head 1. You take the heads backwards, a row of each in turn, or one head everywhere:
                does the loop use its index?""")
            .by(weights=interleave_rows)
            .by(weights=interleave_rows, biases=interleave_rows)
            .by(heads=lambda naive: list(naive.heads)[::-1])
            .by(weights=lambda tensors: torch.cat(tensors[::-1]))
            .by(weights=lambda tensors: torch.cat(tensors[:1] * len(tensors)))
            .by(*({"heads": lambda n, k=k: [n.heads[k] for _ in n.heads]} for k in (0, -1))),
            mistake("""the heads' weights averaged
                You mix the heads' weights, as one average or sum for all. Every head keeps its own
                rows, one head below the other: `torch.cat(weights)`.
            """).by(
                # pyrefly: ignore [missing-attribute]  a sum of tensors is a tensor
                weights=lambda tensors: sum(tensors).repeat(len(tensors), 1) / len(tensors)
            ),
            mistake("""one projection is filled from another
                One of W_q, W_k and W_v, or two, hold what the heads have in another of these. Each
                of the three has its own source.""")
            .by(origin=lambda name, part: "W_q" if name == "W_k" else name)
            .by(*map(take_from_other_layers, ORIGINS)),
            mistake("""not all projections are copied
                W_q, W_k or W_v, or some rows of them, are still the random ones that the module was
                built with. Fill all three, from every head: `torch.cat([head.W_q.weight for head in
                naive.heads])`.""")
            .by(copied_names=())
            .by(*({"copied_names": two} for two in combinations(NAMES[:3], 2))),
            mistake("""W_o is not copied as it is
                Your W_o, or its bias alone, is still the random one that it was built with, or it
                is transposed. Both modules hold it as an `nn.Linear`: copy weight and bias.""")
            .by(W_o=None)
            .by(W_o=copy_weight_only)
            .by(W_o=copy_transposed),
            mistake("""W_o is shared, not copied
                The new module holds the very layer `naive.W_o`. Training one would change the
                other: copy the numbers.""").by(finish=share_W_o),
            mistake("""the biases are not those of naive
                The new module has biases exactly where naive has, `bias=naive.W_o.bias is not
                None`. They are the heads' biases, joined like the weights.""")
            .by(biases=None)
            .by(biased=lambda naive: False, W_o=copy_weight_only)
            .by(biased=lambda naive: True)
            .by(biases=lambda tensors: tensors[0].repeat(len(tensors)))
            .by(biases=lambda tensors: torch.cat(tensors[::-1]))
            .by(biases=lambda tensors: 0 * torch.cat(tensors)),
            mistake("""the number of heads is lost
                All weights are right, but the new module has another number of heads. It needs as
                many as naive: `len(naive.heads)`.""")
            .by(number=lambda naive: 1)
            .by(number=lambda naive: naive.heads[0].W_q.out_features),
        ),
        mistake("""naive itself comes back
            You return the given module, or a copy. Build a `MultiHeadAttention` and fill it.
        """).whole(lambda naive: naive, deepcopy),
        mistake("""nothing comes back
            Your function ends without a `return`, and so returns None. Return the new module.
        """).whole(lambda naive: None),
        mistake("""a state comes back, not a module
            You return a dict of tensors. Load it into a `MultiHeadAttention` and return that.
        """).whole(lambda naive: multihead.naive_to_batched(naive).state_dict()),
    ),
)
