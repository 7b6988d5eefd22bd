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
    """Parameters of order one for a ``Llama``; of tied layers the first one's."""
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
    """The patch of one vector; ``raises`` and ``afterwards`` may be among what is changed."""
    raises, afterwards = changed.pop("raises", None), changed.pop("afterwards", False)
    config: dict[str, Any] = SIZES | changed
    clean, corrupted = (ids_of(rng, config["n_vocab"], on) for _ in range(2))
    told = ", ".join(f"{key}={value!r}" for key, value in config.items())
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
        f"model = Llama(LlamaConfig({told}))",
    )


def ids_of(rng: Rng, n_vocab: int, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, n_vocab, shape))


# --- decisions and mistakes ----------------------------------------------------------------------


def there(model, clean, corrupted, layer, position):
    if not 0 <= layer < len(model.blocks) or not 0 <= position < corrupted.shape[-1]:
        raise ValueError("there is no such layer or position")
    if clean.shape != corrupted.shape:
        raise ValueError("expected two runs of one length")
    return layer, position


def unchecked(model, clean, corrupted, layer, position):
    return layer, position


def streams(model, ids):
    """Return the streams before the first block, and after each."""
    x = model.tokens(ids)
    found = [x]
    for block in model.blocks:
        x = block(x)
        found.append(x)
    return found


def one_vector(x, taken, position):
    x = x.clone()
    x[..., position, :] = taken[..., position, :]
    return x


def to_all(x, taken, position):
    return taken[..., [position], :].expand(x.shape)


def from_place(shift: Callable):
    """The vector of another position is taken."""

    def put(x, taken, position):
        x = x.clone()
        x[..., position, :] = taken[..., shift(position, x.shape[-2]), :]
        return x

    return put


def to_place(shift: Callable):
    """Another position gets its own vector of the clean run."""
    return lambda x, taken, position: one_vector(x, taken, shift(position, x.shape[-2]))


def everything(x, taken, position):
    return taken


def from_there_on(x, taken, position):
    return torch.cat([x[..., :position, :], taken[..., position:, :]], dim=-2)


def up_to_there(x, taken, position):
    return torch.cat([taken[..., : position + 1, :], x[..., position + 1 :, :]], dim=-2)


def added(x, taken, position):
    x = x.clone()
    x[..., position, :] += taken[..., position, :]
    return x


def halved(x, taken, position):
    x = x.clone()
    x[..., position, :] = (x[..., position, :] + taken[..., position, :]) / 2
    return x


def first_of_batch(x, taken, position):
    x = x.clone()
    x[..., position, :] = taken.reshape(-1, *taken.shape[-2:])[0, position]
    return x


def batch_for_sequence(x, taken, position):
    x = x.clone()
    x[position] = taken[position]
    return x


def after_block(layer, n_layers):
    return [layer + 1]


@composition
def compose_patched(
    refuse=there,
    runs=lambda clean, corrupted: (clean, corrupted),
    taken_from=streams,
    where=after_block,
    put=one_vector,
    run=lambda block, x, change: change(block(x)),
    norm=lambda model, x: model.norm(x),
    rows=lambda logits, position: logits,
    finish=as_it_is,
    leave=lambda model, layer, position, taken: None,
):
    """Return ``patched`` made of decisions; ``where`` names streams, 0 before all blocks."""

    def patched(model, clean, corrupted, layer, position):
        layer, position = refuse(model, clean, corrupted, layer, position)
        clean, corrupted = runs(clean, corrupted)
        with torch.no_grad():
            taken = taken_from(model, clean)
            places = where(layer, len(model.blocks))
            x = model.tokens(corrupted)
            for i in range(len(model.blocks) + 1):
                change = (
                    partial(put, taken=taken[i], position=position) if i in places else as_it_is
                )
                x = run(model.blocks[i - 1], x, change) if i else change(x)
            leave(model, layer, position, taken)
            return finish(rows(model.out(norm(model, x)), position))

    return patched


def hook_stays(model, layer, position, taken):
    """The hook that puts the vector in is never removed."""
    vector = taken[layer + 1][..., position, :]

    def hook(block, given, x):
        x = x.clone()
        if x.shape[-2] > position:
            x[..., position, :] = vector
        return x

    model.blocks[layer].register_forward_hook(hook)


def first_hook_stays(model, layer, position, taken):
    """The hook that kept the clean vector is never removed."""
    kept = []
    model.blocks[layer].register_forward_hook(lambda block, given, x: kept.append(x))


def all_hooks_go(model, layer, position, taken):
    """With its own hook goes every other."""
    model.blocks[layer]._forward_hooks.clear()


def in_attention(block, x, change):
    x = x + change(block.attention(block.norm_1(x)))
    return x + block.feed_forward(block.norm_2(x))


def in_feed_forward(block, x, change):
    x = x + block.attention(block.norm_1(x))
    return x + change(block.feed_forward(block.norm_2(x)))


def part_of(run: Callable) -> dict[str, Any]:
    """Options: what a part of the block returns is exchanged, in place of the stream."""

    def taken_from(model, ids):
        found = streams(model, ids)
        kept = [found[0]]
        for block, x in zip(model.blocks, found, strict=False):
            run(block, x, lambda part: kept.append(part) or part)
        return kept

    return {"run": run, "taken_from": taken_from}


def by_index(model, clean, corrupted, layer, position):
    """Negative ones count from the end, what is too large is an ``IndexError``."""
    return range(len(model.blocks))[layer], range(corrupted.shape[-1])[position]


def what_is_added(model, ids):
    """In place of each stream what its block has added to it."""
    found = streams(model, ids)
    return [found[0], *(after - before for before, after in pairwise(found))]


def last_norms(model, ids):
    return [model.norm(x) for x in streams(model, ids)]


def no_answer(layer, n_layers):
    return []


def patches(rng: Rng) -> list[Case]:
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
        Criterion("one vector of the clean run in the corrupted one", 3).on(patches),
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
            run on, and a copy that is changed has to be used.""").by(where=no_answer),
        mistake("""the clean run comes back
            You return the logits of `clean`, or put its whole stream in place. One vector alone
            comes from it.""")
        .by(put=everything)
        .by(where=lambda layer, n: [n], put=everything),
        mistake("""before the block, not after it
            You exchange what goes *into* block `layer`. Exchange what comes out of it: with hooks
            that is a forward hook, not a pre-hook.""")
        .by(where=lambda layer, n: [layer])
        .by(where=lambda layer, n: [layer], taken_from=lambda *given: [*streams(*given)[1:], None]),
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
        .by(part_of(in_attention))
        .by(part_of(in_feed_forward)),
        mistake("""in every layer from there on
            You put the clean vector in after each of the later blocks as well. After block `layer`
            alone: what the later ones make of it is the question.""")
        .by(where=lambda layer, n: range(layer + 1, n + 1))
        .by(where=lambda layer, n: range(n + 1))
        .by(where=lambda layer, n: range(layer + 2)),
        mistake("""another position
            You exchange the vector at another position: the one after, the one before, the last, or
            at several, all up to it, from it on or of the sequence.""")
        .by(put=to_place(lambda position, n: min(position + 1, n - 1)))
        .by(put=to_place(lambda position, n: max(position - 1, 0)))
        .by(put=to_place(lambda position, n: n - 1))
        .by(put=from_there_on)
        .by(put=up_to_there)
        .by(put=to_all),
        mistake("""the vector of another position
            At `position` you put the vector that the clean run has somewhere else. It has its own
            there.""")
        .by(put=from_place(lambda position, n: n - 1))
        .by(put=from_place(lambda position, n: 0))
        .by(put=from_place(lambda position, n: min(position + 1, n - 1))),
        mistake("""added, not put in its place
            You add the clean vector, or average the two. It takes the place of the other.""")
        .by(put=added)
        .by(put=halved),
        mistake("""what the block adds, not the stream
            You take what the block *added* in the clean run. The residual stream is all that runs
            on after it, x with everything that was added so far.""").by(taken_from=what_is_added),
        mistake("""a vector that is normalised
            You take the stream through the final norm. It is taken as it runs from block to
            block.""").by(taken_from=last_norms),
        mistake("""no final norm
            Between the last block and the last layer stands the model's norm: `model.out(
            model.norm(x))`.""").by(norm=lambda model, x: x),
        mistake("""the hook stays
            The model goes on patching after your function has returned. Remove the hook, also where
            the run fails: `try … finally: hook.remove()`.""").by(leave=hook_stays),
        mistake("""the hooks are others afterwards
            A hook that kept the clean vector is still there after your function has returned, or
            hooks that somebody else had set are gone. Remove your own: `hook.remove()`.""")
        .by(leave=first_hook_stays)
        .by(leave=all_hooks_go),
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
            one: `x[..., position, :]`.""").by(put=batch_for_sequence),
        mistake("""the first sequence for all
            You put the first sequence's vector into all of them. Each gets its own.""").by(
            put=first_of_batch
        ),
        mistake("""what does not exist is let through
            A negative layer or position counts from the end in Python, and one that is too large
            gives another error, or none. Here each is a `ValueError`.""")
        .by(refuse=unchecked)
        .by(refuse=by_index)
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
                there(model, clean, corrupted, layer, position + 1) and (layer, position)
            )
        )
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                there(model, clean, corrupted, layer + 1, position) and (layer, position)
            )
        ),
    ),
)
