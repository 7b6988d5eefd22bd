"""The exercise ``patched``: a run with a vector of another.

The model is chapter 18's, with weights of order one, three layers, and fewer heads of keys and
values than of queries.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from attncourse import circuits
from attncourse.checks.callers import call_on_llama
from attncourse.checks.callers.ablation import shapes_of
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import State, tensor
from attncourse.checks.writing.recipes import made, mistake
from attncourse.llama import Llama, LlamaConfig

# --- cases ---------------------------------------------------------------------------------------

SIZES = {
    "n_vocab": 13, "max_length": 16, "d_model": 12, "n_heads": 3, "n_kv_heads": 1, "n_layers": 3,
    "d_ff": 7, "base": 100.0,
}  # fmt: skip


def state_of_llama(rng: Rng, config: dict) -> State:
    """Return parameters of order one for a ``Llama``; of tied layers the first one's."""
    state = {}
    for name, shape in shapes_of(Llama, LlamaConfig(**config)).items():
        numbers = rng.uniform(0.4, 1.2, shape)
        if not name.endswith("gain"):
            numbers = numbers * rng.choice([-1, 1], shape) / 2
        state[name] = tensor(numbers)
    return state


def patch_case(
    rng: Rng, layer: int, position: int, on: tuple[int, ...] = (7,), note: str = "", **changed
) -> Case:
    """Return the case that patches one vector; ``changed`` may set ``raises``, ``afterwards``."""
    raises, afterwards = changed.pop("raises", None), changed.pop("afterwards", False)
    config: dict[str, Any] = SIZES | changed
    clean, corrupted = (random_ids(rng, config["n_vocab"], on) for _ in range(2))
    config_text = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return Case(
        kwargs={
            "config": config,
            "args": (clean, corrupted, layer, position),
            "afterwards": afterwards,
        }
        | state_of_llama(rng, config),
        use=call_on_llama,
        note=note,
        raises=raises,
        shown=f"patched(model, clean, corrupted, {layer}, {position}), "
        f"model = Llama(LlamaConfig({config_text}))",
    )


def random_ids(rng: Rng, n_vocab: int, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, n_vocab, shape))


# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_place(model, clean, corrupted, layer, position):
    """Raise a ``ValueError`` if layer or position does not exist; else return both."""
    if not 0 <= layer < len(model.blocks) or not 0 <= position < corrupted.shape[-1]:
        raise ValueError("there is no such layer or position")
    if clean.shape != corrupted.shape:
        raise ValueError("expected two runs of one length")
    return layer, position


def accept_any_place(model, clean, corrupted, layer, position):
    """Return layer and position unchecked."""
    return layer, position


def residual_streams(model, ids):
    """Return the streams before the first block, and after each."""
    x = model.tokens(ids)
    all_streams = [x]
    for block in model.blocks:
        x = block(x)
        all_streams.append(x)
    return all_streams


def patch_one_vector(x, clean, position):
    x = x.clone()
    x[..., position, :] = clean[..., position, :]
    return x


def same_vector_everywhere(x, clean, position):
    """Return the clean run's vector at every position."""
    return clean[..., [position], :].expand(x.shape)


def clean_vector_from(shift: Callable):
    """Return a ``patch`` that takes the clean vector of another position."""

    def patch(x, clean, position):
        x = x.clone()
        x[..., position, :] = clean[..., shift(position, x.shape[-2]), :]
        return x

    return patch


def patch_at(shift: Callable):
    """Return a ``patch`` that gives another position its own vector of the clean run."""
    return lambda x, clean, position: patch_one_vector(x, clean, shift(position, x.shape[-2]))


def whole_clean_stream(x, clean, position):
    """Return the stream of the clean run."""
    return clean


def patch_from_position_on(x, clean, position):
    return torch.cat([x[..., :position, :], clean[..., position:, :]], dim=-2)


def patch_up_to_position(x, clean, position):
    return torch.cat([clean[..., : position + 1, :], x[..., position + 1 :, :]], dim=-2)


def add_clean_vector(x, clean, position):
    x = x.clone()
    x[..., position, :] += clean[..., position, :]
    return x


def average_both_vectors(x, clean, position):
    x = x.clone()
    x[..., position, :] = (x[..., position, :] + clean[..., position, :]) / 2
    return x


def vector_of_first_sequence(x, clean, position):
    """Put the vector of the batch's first sequence into all of them."""
    x = x.clone()
    x[..., position, :] = clean.reshape(-1, *clean.shape[-2:])[0, position]
    return x


def index_batch_not_tokens(x, clean, position):
    """Put in the whole sequence that ``[position]`` finds in a batch."""
    x = x.clone()
    x[position] = clean[position]
    return x


def stream_after_block(layer, n_layers):
    return [layer + 1]


@composition
def compose_patched(
    refuse=refuse_place,
    runs=lambda clean, corrupted: (clean, corrupted),
    record=residual_streams,
    where=stream_after_block,
    patch=patch_one_vector,
    run=lambda block, x, change: change(block(x)),
    norm=lambda model, x: model.norm(x),
    rows=lambda logits, position: logits,
    finish=as_it_is,
    leave_behind=lambda model, layer, position, clean_streams: None,
):
    """Return ``patched`` made of decisions; ``where`` names streams, 0 before all blocks."""

    def patched(model, clean, corrupted, layer, position):
        layer, position = refuse(model, clean, corrupted, layer, position)
        clean, corrupted = runs(clean, corrupted)
        with torch.no_grad():
            clean_streams = record(model, clean)
            places = where(layer, len(model.blocks))
            x = model.tokens(corrupted)
            for i in range(len(model.blocks) + 1):
                change = (
                    partial(patch, clean=clean_streams[i], position=position)
                    if i in places
                    else as_it_is
                )
                x = run(model.blocks[i - 1], x, change) if i else change(x)
            leave_behind(model, layer, position, clean_streams)
            return finish(rows(model.out(norm(model, x)), position))

    return patched


def leave_patching_hook(model, layer, position, clean_streams):
    """Put the vector in by a hook that is never removed."""
    vector = clean_streams[layer + 1][..., position, :]

    def hook(block, inputs, x):
        x = x.clone()
        if x.shape[-2] > position:
            x[..., position, :] = vector
        return x

    model.blocks[layer].register_forward_hook(hook)


def leave_recording_hook(model, layer, position, clean_streams):
    """Record the clean vector by a hook that is never removed."""
    recorded = []
    model.blocks[layer].register_forward_hook(lambda block, inputs, x: recorded.append(x))


def remove_all_hooks(model, layer, position, clean_streams):
    """Remove every hook of the block, not only its own."""
    model.blocks[layer]._forward_hooks.clear()


def patch_attention_output(block, x, change):
    x = x + change(block.attention(block.norm_1(x)))
    return x + block.feed_forward(block.norm_2(x))


def patch_feed_forward_output(block, x, change):
    x = x + block.attention(block.norm_1(x))
    return x + change(block.feed_forward(block.norm_2(x)))


def patch_part_of_block(run: Callable) -> dict[str, Any]:
    """Return the options that exchange what a part of the block returns, not the stream."""

    def record(model, ids):
        stream_values = residual_streams(model, ids)
        part_outputs = [stream_values[0]]
        for block, x in zip(model.blocks, stream_values, strict=False):
            run(block, x, lambda part: part_outputs.append(part) or part)
        return part_outputs

    return {"run": run, "record": record}


def index_like_python(model, clean, corrupted, layer, position):
    """Return layer and position as Python indexes: negative ones count from the end."""
    return range(len(model.blocks))[layer], range(corrupted.shape[-1])[position]


def block_contributions(model, ids):
    """Return what each block adds to the stream, in place of the streams."""
    stream_values = residual_streams(model, ids)
    return [stream_values[0], *(after - before for before, after in pairwise(stream_values))]


def finally_normed_streams(model, ids):
    return [model.norm(x) for x in residual_streams(model, ids)]


def patch_no_stream(layer, n_layers):
    return []


def patch_cases(rng: Rng) -> list[Case]:
    return [
        patch_case(rng, 1, 3),
        patch_case(rng, 0, 4, on=(6,)),
        patch_case(rng, 2, 5, on=(6,), note="after the last block, at the last position"),
        patch_case(rng, 1, 0, on=(5,), note="at the first position"),
    ]


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    circuits.patched,
    section="Chapter 19, “Where the answer is”",
    difficulty=3,
    minutes=25,
    limit=10.0,
    criteria=(
        Criterion("one vector of the clean run in the corrupted one", 3).on(patch_cases),
        Criterion("a batch, other models", 1).on(
            lambda rng: [
                patch_case(rng, 1, 2, on=(2, 5), note="a batch of 2"),
                patch_case(rng, 0, 1, on=(4, 4), note="a batch of 4, four tokens"),
                patch_case(rng, 0, 2, on=(5,), n_layers=1, note="one layer"),
                patch_case(rng, 2, 1, on=(4,), n_heads=2, n_kv_heads=2, tied=False),
                patch_case(rng, 1, 0, on=(1,), note="one token"),
            ]
        ),
        Criterion("the model stays as it is, and no hook is left behind", 1).on(
            lambda rng: [
                patch_case(rng, 0, 2, on=(5,), afterwards=True),
                patch_case(rng, 1, 3, on=(2, 6), n_heads=2, n_kv_heads=2, afterwards=True),
            ]
        ),
        Criterion("a layer or position that does not exist: ValueError", 1).on(
            lambda rng: [
                patch_case(rng, 3, 0, note="a layer too many", raises=ValueError),
                patch_case(rng, -1, 0, note="layer −1", raises=ValueError),
                patch_case(rng, 0, 7, note="a position too many", raises=ValueError),
                patch_case(rng, 0, -1, note="position −1", raises=ValueError),
            ]
        ),
        unchanged(),
    ),
    excludes=(("*", "What it is given is a model and sequences of ids."),),
    mistakes=made(
        compose_patched,
        mistake("""patched the wrong way round
            You run `clean` with a vector of `corrupted`. It is the corrupted run that is asked for,
            with one vector of the clean one in it.""").by(
            runs=lambda clean, corrupted: (corrupted, clean)
        ),
        mistake("""nothing is patched
            Your logits are those of the corrupted run as it is. A hook has to *return* what should
            run on, and a copy that is changed has to be used.""").by(where=patch_no_stream),
        mistake("""the clean run comes back
            You return the logits of `clean`, or put its whole stream in place. One vector alone
            comes from it.""")
        .by(patch=whole_clean_stream)
        .by(where=lambda layer, n: [n], patch=whole_clean_stream),
        mistake("""before the block, not after it
            You exchange what goes *into* block `layer`. Exchange what comes out of it: with hooks
            that is a forward hook, not a pre-hook.""")
        .by(where=lambda layer, n: [layer])
        .by(
            where=lambda layer, n: [layer],
            record=lambda *args: [*residual_streams(*args)[1:], None],
        ),
        mistake("""another layer
            You exchange the vector after another block. Layers count from 0, `model.blocks[layer]`.
        """)
        .by(where=lambda layer, n: [min(layer + 2, n)])
        .by(where=lambda layer, n: [n - layer]),
        mistake("""nothing is computed from it
            You exchange what comes after the last block, or the logits, so that no block sees the
            clean vector. It goes in after block `layer`; all that follows is computed anew.
        """).by(where=lambda layer, n: [n]),
        mistake("""the token is exchanged
            You put the clean token's id, or its embedding, among the corrupted ones. The vector is
            the one that comes out of block `layer`.""").by(where=lambda layer, n: [0]),
        mistake("""a part of the block
            Your hook sits on the block's attention or on its feed-forward layer. What these return
            is added to the stream; the stream is what the block itself returns.""")
        .by(patch_part_of_block(patch_attention_output))
        .by(patch_part_of_block(patch_feed_forward_output)),
        mistake("""in every layer from there on
            You put the clean vector in after each of the later blocks as well. After block `layer`
            alone: what the later ones make of it is the question.""")
        .by(where=lambda layer, n: range(layer + 1, n + 1))
        .by(where=lambda layer, n: range(n + 1))
        .by(where=lambda layer, n: range(layer + 2)),
        mistake("""another position
            You exchange the vector at another position: the one after, the one before, the last, or
            at several, all up to it, from it on or of the sequence.""")
        .by(patch=patch_at(lambda position, n: min(position + 1, n - 1)))
        .by(patch=patch_at(lambda position, n: max(position - 1, 0)))
        .by(patch=patch_at(lambda position, n: n - 1))
        .by(patch=patch_from_position_on)
        .by(patch=patch_up_to_position)
        .by(patch=same_vector_everywhere),
        mistake("""the vector of another position
            At `position` you put the vector that the clean run has somewhere else. It has its own
            there.""")
        .by(patch=clean_vector_from(lambda position, n: n - 1))
        .by(patch=clean_vector_from(lambda position, n: 0))
        .by(patch=clean_vector_from(lambda position, n: min(position + 1, n - 1))),
        mistake("""added, not put in its place
            You add the clean vector, or average the two. It takes the place of the other.""")
        .by(patch=add_clean_vector)
        .by(patch=average_both_vectors),
        mistake("""what the block adds, not the stream
            You take what the block *added* in the clean run. The residual stream is all that runs
            on after it, x with everything that was added so far.""").by(
            record=block_contributions
        ),
        mistake("""a vector that is normalised
            You take the stream through the final norm. It is taken as it runs from block to
            block.""").by(record=finally_normed_streams),
        mistake("""no final norm
            Between the last block and the last layer stands the model's norm: `model.out(
            model.norm(x))`.""").by(norm=lambda model, x: x),
        mistake("""the hook stays
            The model goes on patching after your function has returned. Remove the hook, also where
            the run fails: `try … finally: hook.remove()`.""").by(leave_behind=leave_patching_hook),
        mistake("""the hooks are others afterwards
            A hook that kept the clean vector is still there after your function has returned, or
            hooks that somebody else had set are gone. Remove your own: `hook.remove()`.""")
        .by(leave_behind=leave_recording_hook)
        .by(leave_behind=remove_all_hooks),
        mistake("""one token's logits alone
            You return the row of the last token, or of the one at `position`. Logits for every
            position are asked for, `(..., n, n_vocab)`.""")
        .by(finish=lambda logits: logits[..., -1, :])
        .by(rows=lambda logits, position: logits[..., position, :]),
        mistake("""probabilities come back
            You return probabilities or their logs. Return logits, before any softmax.""")
        .by(finish=lambda logits: logits.softmax(-1))
        .by(finish=lambda logits: logits.log_softmax(-1)),
        mistake("""positions are looked up in the batch
            `x[position]` is a sequence where there is a batch. Positions are on the last axis but
            one: `x[..., position, :]`.""").by(patch=index_batch_not_tokens),
        mistake("""the first sequence for all
            You put the first sequence's vector into all of them. Each gets its own.""").by(
            patch=vector_of_first_sequence
        ),
        mistake("""what does not exist is let through
            A negative layer or position counts from the end in Python, and one that is too large
            gives another error, or none. Here each is a `ValueError`.""")
        .by(refuse=accept_any_place)
        .by(refuse=index_like_python)
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                min(layer, len(model.blocks) - 1),
                min(position, corrupted.shape[-1] - 1),
            )
        ),
        mistake("""what exists is refused
            The first and the last of layers and positions exist, and a sequence may have one token.
        """)
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                refuse_place(model, clean, corrupted, layer, position + 1) and (layer, position)
            )
        )
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                refuse_place(model, clean, corrupted, layer + 1, position) and (layer, position)
            )
        ),
    ),
)
