"""Cases that several of the chapter's exercises share."""

from attncourse.checks.exercise import Case, Criterion, Rng, unchanged
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import CaseTable, once_more, row, standard
from attncourse.checks.writing.modules import State, tensor, uniform_values


def moving_criteria(
    table: CaseTable, by_hand: Case, order: str, *more: Criterion
) -> tuple[Criterion, ...]:
    """Return the criteria of both directions; ``order`` says where the features stand."""
    rows = standard(table, h=3)
    in_order = (
        row("n=7 h=4 d_head=3"),
        row("n=3 h=3 d_head=4", note="as many tokens as heads"),
        row("n=5 h=3 d_head=3", note="as many heads as features in a head"),
        row("n=2 h=5 d_head=2", note="as many tokens as features in a head"),
    )
    special = (
        row("n=1 h=3 d_head=2", note="one token"),
        row("n=5 h=1 d_head=6", note="one head"),
        row("n=5 h=4 d_head=1", note="one feature in a head"),
        row("n=7 h=4 d_head=3", turned=True, note="not contiguous in memory"),
    )
    batches = (
        *rows.contiguous,
        row("n=5 h=3 d_head=4", batch=(3,), note="as many sequences as heads"),
        row("n=12 h=3 d_head=4", batch=(12,), note="n, d and the batch are the same"),
        row("n=5 h=3 d_head=4", batch=(1,), note="a batch of 1"),
    )
    return (
        table.criterion(order, 2).on(by_hand, *in_order),
        table.criterion("one token, one head, any memory layout", 1).on(*special),
        table.criterion("batches", 1).on(*batches),
        table.criterion(cases.SCATTERED, 1).on(*rows.not_contiguous),
        table.criterion("float32 and large entries", 1).on(*rows.numbers, once_more(by_hand)),
        table.criterion("gradients reach x", 1).on(*rows.gradients),
        *more,
        unchanged(),
    )


def layer_weights(rng: Rng, bias: bool, **shapes: tuple[int, int]) -> State:
    """Return weights of order one for layers of these shapes, and biases that are not zero."""
    state = {}
    for name, (d_out, d_in) in shapes.items():
        state[f"{name}.weight"] = uniform_values(rng, d_out, d_in)
        if bias:
            sign = rng.choice([-1, 1], d_out)
            state[f"{name}.bias"] = tensor(rng.uniform(0.5, 1.5, d_out) * sign)
    return state
