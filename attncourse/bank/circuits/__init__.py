"""The exercises of chapter 19: masks that keep a sink, edges that are cut, a lens, a patch."""

from attncourse.bank.circuits import cut_edges, logit_lens, patched, sink_mask

EXERCISES = (
    sink_mask.EXERCISE,
    cut_edges.EXERCISE,
    logit_lens.EXERCISE,
    patched.EXERCISE,
)
