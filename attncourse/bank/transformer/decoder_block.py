"""The exercise ``DecoderBlock``: an encoder's block with attention to a memory."""

from attncourse import transformer
from attncourse.bank.transformer.cases import (
    OUTPUT_PARAMETERS,
    POST_NORM,
    RARE_CASES,
    block_state,
    groups_of_names,
)
from attncourse.bank.transformer.mistakes import (
    DECODER_BRANCHES,
    block_class,
    decoder_layers,
    drop_attention_input,
    dropout_criteria,
    of_the_mask,
    of_the_stream,
    run_in_turn,
)
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

# --- cases ---------------------------------------------------------------------------------------

STATE = block_state(("self_attention", "cross_attention"), 3)
CASES = ModuleTable(
    {"x": "... m d_model", "memory": "... n d_model"},
    name="DecoderBlock",
    build="d_model h d_ff",
    state=STATE,
)
ROWS = standard(CASES, d_model=12, h=3)
ROW = row("m=5 n=7 d_model=12 h=3 d_ff=11")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_decoder_block(
    layers=decoder_layers,
    masks=lambda mask, memory_mask: (mask, memory_mask),
    recall=lambda self, memory: memory,
    look=lambda self, x, mask, *seen: self.self_attention(x, *seen, mask=mask),
    ask=lambda self, x, memory, mask: self.cross_attention(x, memory, mask=mask),
    feed=lambda self, x: self.feed_forward(x),
    **options,
):
    """Return a ``DecoderBlock`` made of decisions."""

    def branches(self, memory, mask, memory_mask):
        mask, memory_mask = masks(mask, memory_mask)
        memory = recall(self, memory)
        return [
            lambda x, *seen: look(self, x, mask, *seen),
            lambda x: ask(self, x, memory, memory_mask),
            lambda x: feed(self, x),
        ]

    return block_class("DecoderBlock", branches, layers, **options)


ONLY_SELF = {"mask": hole("m m"), "memory_mask": None}
ONLY_MEMORY = {"mask": None, "memory_mask": hole("m n")}
SQUARE = row("m=5 n=5 d_model=12 h=3 d_ff=11", note="as many tokens in the memory")

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    transformer.DecoderBlock,
    section="Chapter 12, “A block that reads another sequence”",
    difficulty=3,
    minutes=25,
    forbids=("multi_head_attention_forward",),
    criteria=(
        CASES.criterion("pre-norm: self-attention, attention to the memory, feed-forward", 3).on(
            ROW,
            SQUARE,
            row("m=5 n=3 d_model=32 h=2 d_ff=3", then="m=3 n=2"),
            ROW.but(then={}, note=OTHER_NUMBERS),
            ROW.but(options={"pre_norm": True}, note="pre_norm=True is given"),
        ),
        CASES.criterion("post-norm", 2).on(
            ROW.but(options=POST_NORM),
            SQUARE.but(options=POST_NORM),
            row(
                "m=5 n=3 d_model=16 h=4 d_ff=6", options=POST_NORM, batch=(2,), note="a batch of 2"
            ),
        ),
        CASES.criterion("the hidden layer has 4·d_model units unless d_ff is given", 1).on(
            row("m=5 n=3 d_model=8 h=2"),
        ),
        CASES.criterion("mask for the own sequence, memory_mask for the memory", 3).on(
            ROW.but(arguments=ONLY_SELF, note="mask alone"),
            ROW.but(arguments=ONLY_MEMORY, note="memory_mask alone"),
            SQUARE.but(arguments=ONLY_SELF, note="mask alone, m = n"),
            ROW.but(arguments=ONLY_SELF | {"memory_mask": hole("1 n")}, note="both"),
            SQUARE.but(arguments=ONLY_SELF | {"memory_mask": hole("m n")}, note="both, m = n"),
            SQUARE.but(
                arguments=ONLY_SELF | {"memory_mask": hole("m n")},
                options=POST_NORM,
                note="both, m = n, post-norm",
            ),
            ROW.but(
                batch=(2,),
                arguments={"mask": hole("... m m"), "memory_mask": hole("... 1 n")},
                note="of its own for each sequence",
            ),
            ROW.but(
                "m=5",
                batch=(5,),
                arguments={"mask": hole("m m"), "memory_mask": hole("m n")},
                note=ONE_MASK,
            ),
        ),
        *dropout_criteria(
            1,
            "DecoderBlock",
            CASES,
            ROW,
            STATE,
            "self_attention.W_o",
            "cross_attention.W_o",
            "feed_forward.W_2",
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion(RARE_CASES, 1).on(
            row("m=3 n=5 d_model=4 h=1 d_ff=7", note="one head"),
            row("m=1 n=7 d_model=8 h=2 d_ff=5", note="one token"),
            row("m=7 n=1 d_model=8 h=2 d_ff=5", note="a memory of one token"),
            ROW.but(options=POST_NORM, zero=OUTPUT_PARAMETERS, note="the branches add nothing"),
            *(ROW.but(zero=zero, note="some weights are 0") for zero in groups_of_names(STATE)),
            ROWS.single.but("d_model=21", note="float32, d_head = 7"),
            *ROWS.extreme,
            ROWS.extreme[0].but(options=POST_NORM, note="x in the millions, post-norm"),
        ),
        CASES.criterion("gradients reach x, memory and every weight", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_decoder_block,
        *of_the_stream(
            decoder_layers, DECODER_BRANCHES, {"look": drop_attention_input("self_attention")}
        ),
        *of_the_mask("look", "self_attention", ()),
        mistake("""the memory is normalised
            You normalise the memory before it is read. It comes from an encoder that has its own
            last norm, and is read as it comes: only x goes through `norm_2`.""")
        .by(recall=lambda self, memory: self.norm_2(memory))
        .by(recall=lambda self, memory: self.norm_1(memory))
        .by(recall=lambda self, memory: self.norm_3(memory))
        .by(recall=lambda self, memory: self.norm_2(memory) if self.pre_norm else memory),
        mistake("""keys and values from x
            Your second attention asks x itself. Queries come from x, keys and values from the
            memory: `self.cross_attention(x, memory, …)`.""")
        .by(ask=lambda self, x, memory, mask: self.cross_attention(x, mask=None))
        .by(ask=lambda self, x, memory, mask: self.cross_attention(x, memory, x, mask=mask))
        .by(ask=lambda self, x, memory, mask: self.cross_attention(x, x, memory, mask=mask)),
        mistake("""the memory asks
            Your queries come from the memory, so the result has its length. x asks, the memory
            answers: `self.cross_attention(x, memory, …)`.""")
        .by(ask=lambda self, x, memory, mask: self.cross_attention(memory, x))
        .by(ask=lambda self, x, memory, mask: self.cross_attention(memory, x, mask=mask))
        .by(
            ask=lambda self, x, memory, mask: self.cross_attention(
                memory, x, mask=None if mask is None else mask.mT
            )
        ),
        mistake("""the masks are exchanged
            `mask` says which tokens of x each may see and belongs to the self-attention,
            `memory_mask` to the attention to the memory.
        """).by(masks=lambda mask, memory_mask: (memory_mask, mask)),
        mistake("""one mask for both attentions
            You use `mask`, or `memory_mask`, in both attentions. Each has its own.""")
        .by(masks=lambda mask, memory_mask: (mask, mask))
        .by(masks=lambda mask, memory_mask: (memory_mask, memory_mask)),
        mistake("""memory_mask is ignored
            Your attention to the memory sees all of it. Hand the mask on: `self.cross_attention(x,
            memory, mask=memory_mask)`.""").by(masks=lambda mask, memory_mask: (mask, None)),
        mistake("""memory_mask is inverted
            You shut out what memory_mask allows. True means allowed: hand it on as it is.""").by(
            masks=lambda mask, memory_mask: (
                mask,
                None if memory_mask is None else ~memory_mask,
            )
        ),
        mistake("""the attentions are exchanged
            x looks at itself with `self_attention` and at the memory with `cross_attention`. You
            use the one for the other.""")
        .by(
            look=lambda self, x, mask: self.cross_attention(x, mask=mask),
            ask=lambda self, x, memory, mask: self.self_attention(x, memory, mask=mask),
        )
        .by(look=lambda self, x, mask: self.cross_attention(x, mask=mask))
        .by(ask=lambda self, x, memory, mask: self.self_attention(x, memory, mask=mask)),
        mistake("""an attention is missing
            x is to look at itself first and at the memory then. You leave one of the two out.""")
        .by(walk=lambda x, steps: run_in_turn(x, steps[::2]))
        .by(walk=lambda x, steps: run_in_turn(x, steps[1:])),
    ),
)
