"""The exercise ``EncoderBlock``: attention and a feed-forward layer, each added to what it read."""

from attncourse import transformer
from attncourse.bank.transformer.cases import (
    OUTPUT_PARAMETERS,
    POST_NORM,
    RARE_CASES,
    block_state,
    groups_of_names,
)
from attncourse.bank.transformer.mistakes import (
    ENCODER_BRANCHES,
    block_class,
    drop_attention_input,
    dropout_criteria,
    of_the_mask,
    of_the_stream,
    run_in_turn,
)
from attncourse.checks import callers
from attncourse.checks.exercise import composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    ONE_MASK,
    OTHER_NUMBERS,
    hole,
    row,
    standard,
)
from attncourse.checks.writing.modules import ModuleTable
from attncourse.checks.writing.recipes import made, mistake
from attncourse.multihead import MultiHeadAttention

# --- cases ---------------------------------------------------------------------------------------

STATE = block_state(("attention",), 2)
CASES = ModuleTable(
    {"x": "... n d_model"}, name="EncoderBlock", build="d_model h d_ff", state=STATE
)
ROWS = standard(CASES, d_model=12, h=3)
ROW = row("n=7 d_model=12 h=3 d_ff=5")

# --- decisions and mistakes ----------------------------------------------------------------------


def encoder_layers(d_model, n_heads, d_ff):
    return {
        "attention": MultiHeadAttention(d_model, n_heads),
        "feed_forward": transformer.FeedForward(d_model, d_ff),
        **{f"norm_{i}": transformer.LayerNorm(d_model) for i in (1, 2)},
    }


@composition
def compose_encoder_block(
    layers=encoder_layers,
    attend=lambda self, x, mask, *seen: self.attention(x, *seen, mask=mask),
    feed=lambda self, x: self.feed_forward(x),
    **options,
):
    """Return an ``EncoderBlock`` made of decisions."""

    def branches(self, mask):
        return [lambda x, *seen: attend(self, x, mask, *seen), lambda x: feed(self, x)]

    return block_class("EncoderBlock", branches, layers, **options)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    transformer.EncoderBlock,
    section="Chapter 12, “The block”",
    difficulty=3,
    minutes=30,
    forbids=("multi_head_attention_forward",),
    criteria=(
        CASES.criterion("pre-norm: x + branch(norm(x)), twice", 3).on(
            ROW,
            row("n=12 d_model=12 h=3 d_ff=12", note="n, d_model and d_ff are the same"),
            row("n=5 d_model=32 h=2 d_ff=3", then="n=3"),
            ROW.but(then={}, note=OTHER_NUMBERS),
            ROW.but(options={"pre_norm": True}, note="pre_norm=True is given"),
        ),
        CASES.criterion("post-norm: norm(x + branch(x)), twice", 3).on(
            ROW.but(options=POST_NORM),
            row("n=5 d_model=16 h=4 d_ff=6", options=POST_NORM, batch=(2,), note="a batch of 2"),
        ),
        CASES.criterion("the hidden layer has 4·d_model units unless d_ff is given", 1).on(
            row("n=5 d_model=8 h=2"),
            row("n=3 d_model=4 h=4", options=POST_NORM),
        ),
        CASES.criterion("a mask goes to the attention", 2).on(
            ROW.but(arguments={"mask": hole("n n")}, note="(n, n)"),
            ROW.but(arguments={"mask": hole("n n")}, options=POST_NORM, note="(n, n), post-norm"),
            ROW.but(batch=(2,), arguments={"mask": hole("... n n")}, note="(b, n, n)"),
            ROW.but(batch=(3,), arguments={"mask": hole("... n n")}, note="(b, n, n), b = h"),
            ROW.but("n=5", batch=(5,), arguments={"mask": hole("n n")}, note=ONE_MASK),
            ROW.but(batch=(2,), arguments={"mask": hole("... h n n")}, note="(b, h, n, n)"),
        ),
        *dropout_criteria(
            2,
            "EncoderBlock",
            CASES,
            ROW,
            STATE,
            "attention.W_o",
            "feed_forward.W_2",
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion(RARE_CASES, 1).on(
            row("n=3 d_model=4 h=1 d_ff=7", note="one head"),
            row("n=3 d_model=4 h=1 d_ff=7", options=POST_NORM, note="one head"),
            row("n=1 d_model=8 h=2 d_ff=5", note="one token"),
            ROW.but(options=POST_NORM, zero=OUTPUT_PARAMETERS, note="the branches add nothing"),
            *(ROW.but(zero=zero, note="some weights are 0") for zero in groups_of_names(STATE)),
            ROWS.single.but("d_model=21", note="float32, d_head = 7"),
            *ROWS.extreme,
            ROWS.extreme[0].but(options=POST_NORM, note="x in the millions, post-norm"),
        ),
        CASES.criterion("gradients reach x and every weight", 1).on(
            *ROWS.gradients,
            ROW.but(options=POST_NORM, use=callers.call_module_with_gradients, note="post-norm"),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_encoder_block,
        *of_the_stream(
            encoder_layers, ENCODER_BRANCHES, {"attend": drop_attention_input("attention")}
        ),
        *of_the_mask("attend", "attention", ()),
        mistake("""no attention
            You have it and do not use it: your tokens never meet. It is the first branch.
        """).by(walk=lambda x, steps: run_in_turn(x, steps[1:])),
    ),
)
