"""The exercise ``delta_rule``: a memory of fixed size that every token corrects."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from attncourse import today
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Row, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemoryCases(CaseTable):
    """Queries, keys, values and β: keys of lengths from 0.4 to 1.3, β from 0 to 1.

    Longer keys would make the state grow from token to token without a bound.
    """

    def argument(self, rng: Rng, name: str, entry: Any, row: Row) -> Any:
        x = super().argument(rng, name, entry, row)
        if name == "beta":
            return x.abs().clamp(max=1)
        if name == "key":
            size = x.norm(dim=-1, keepdim=True)
            lengths = torch.from_numpy(rng.uniform(0.4, 1.3, tuple(size.shape))).to(x)
            return x / size.where(size > 0, 1) * lengths
        return x


CASES = MemoryCases(
    {"query": "... n d_k", "key": "... n d_k", "value": "... n d_v", "beta": "... n"}
)
ROWS = standard(CASES)
ROW = row("n=7 d_k=3 d_v=4")
BY_HAND = Case(
    (
        tensor([[1, 0], [1, 0], [1, 1]]),
        tensor([[1, 0], [1, 0], [0, 2]]),
        tensor([[4, 8], [6, 0], [1, 3]]),
        tensor([1, 0.5, 0.25]),
    ),
    note="one key twice, then one of length 2",
)


def repeated_key_cases(rng: Rng) -> list[Case]:
    """Return cases of keys at right angles, some of which come again with another value."""
    keys = torch.eye(4, dtype=torch.float64)[[0, 1, 2, 1, 0, 3, 0]]
    values = tensor(rng.uniform(-1, 1, (7, 3)))
    ones = torch.ones(7, dtype=torch.float64)
    return [
        Case((keys.roll(2, 0), keys, values, ones), note="keys come again, β = 1"),
        Case((keys, keys, values, ones / 2), note="keys come again, β = 1/2"),
    ]


# --- decisions and mistakes ----------------------------------------------------------------------


def error_of_state(value, state, key):
    """Return the value less what the state answers to the key, ``(..., 1, d_v)``."""
    return value - key.mT @ state


def correct_state(state, key, error, beta):
    return state + beta * key * error


@composition
def compose_delta_rule(
    keys=as_it_is,
    queries=as_it_is,
    values=as_it_is,
    strength=as_it_is,
    begin=lambda key, value: torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]),
    fade=lambda state, key, beta: state,
    error=error_of_state,
    write=correct_state,
    fade_after=lambda state, beta: state,
    state_to_read=lambda old, new: new,
    read=lambda query, state: query @ state,
    finish=lambda outputs, states, query: torch.cat(outputs, -2),
):
    """Return ``delta_rule`` made of decisions; ``state_to_read`` chooses of two states."""

    def delta_rule(query, key, value, beta):
        query, key, value, beta = queries(query), keys(key), values(value), strength(beta)
        state, outputs, states = begin(key, value), [], []
        for t in range(key.shape[-2]):
            k, v = key[..., t, :, None], value[..., t, None, :]
            b = beta[..., t, None, None]
            new = fade(state, k, b)
            new = fade_after(write(new, k, error(v, new, k), b), b)
            outputs.append(read(query[..., t, None, :], state_to_read(state, new)))
            states.append(new)
            state = new
        return finish(outputs, states, query)

    return delta_rule


def fade_before(alpha: float) -> dict[str, Any]:
    """Return the option in which the state fades before it is corrected."""
    return {"fade": lambda state, key, beta: alpha * state}


def fade_afterwards(alpha: float) -> dict[str, Any]:
    """Return the option in which the state fades with what has just been written."""
    return {"fade_after": lambda state, beta: alpha * state}


def divide_by_sums(outputs, states, query):
    """Return outputs divided by the sum of what each query finds in the keys' own sums."""
    out = torch.cat(outputs, -2)
    return out / (out.sum(-1, keepdim=True) + 1e-6)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    today.delta_rule,
    section="Chapter 21, “A memory that can be corrected”",
    difficulty=2,
    minutes=20,
    criteria=(
        CASES.criterion("the error is mended by β, then the state is read", 3).on(
            BY_HAND, ROW, row("n=5 d_k=4 d_v=4"), row("n=4 d_k=5 d_v=2", batch=(2,))
        ),
        Criterion("a key that comes again is overwritten", 1).on(repeated_key_cases),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one token, β of 0 and 1, float32, large and small numbers", 1).on(
            ROW.but("n=1", note="one token"),
            ROW.but("n=2", note="two tokens"),
            ROW.but(zero=("beta",), note="β of 0"),
            ROW.but(factor={"beta": 1e9}, note="β of 1"),
            row("n=4 d_k=1 d_v=1", note="one feature"),
            *ROWS.numbers,
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach every argument", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_delta_rule,
        mistake("""nothing is corrected
            You add β k vᵀ to the state, whatever it answers to k already. What is added is β k
            times the *error*, v − Sᵀ k.""").by(error=lambda value, state, key: value),
        mistake("""β is on the key
            You multiply the key by β wherever it stands, so that the state is asked with a smaller
            key, too. β stands before the correction: S + β k (v − Sᵀ k)ᵀ.""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: S + b * k * (value - (b * k).mT @ S),
        ),
        mistake("""β is on the value
            You multiply the value by β and subtract the whole of what the state answers. β stands
            before the whole error: β (v − Sᵀ k).""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: S + k * (b * value - k.mT @ S),
        ),
        mistake("""β is on what is forgotten alone
            You subtract β times what the state answers and add the value whole. β stands before
            the whole error: β (v − Sᵀ k).""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: S + k * (value - b * (k.mT @ S)),
        ),
        mistake("""β is left out
            You mend the whole error at every token. β says how much of it: a number from 0 to 1.
        """).by(write=lambda S, k, error, b: S + k * error),
        mistake("""β twice
            You multiply by β twice, or by its square. Once: β k (v − Sᵀ k)ᵀ.""").by(
            write=lambda S, k, error, b: S + b * b * k * error
        ),
        mistake("""read before it is corrected
            A query reads the state as its own token found it. The token is written first: S is
            corrected by token t, then query t reads it.""").by(state_to_read=lambda old, new: old),
        mistake("""the keys are made to length 1
            You divide the keys by their lengths, as layers do before they call this. Here keys are
            taken as they come.""")
        .by(keys=lambda key: F.normalize(key, dim=-1))
        .by(
            keys=lambda key: F.normalize(key, dim=-1),
            queries=lambda query: F.normalize(query, dim=-1),
        ),
        mistake("""the queries are scaled
            You divide the queries by √d_k or by their length. Here they are taken as they come:
            out = Sᵀ q.""")
        .by(queries=lambda query: query / query.shape[-1] ** 0.5)
        .by(queries=lambda query: F.normalize(query, dim=-1)),
        mistake("""the whole state fades by β
            You multiply the state by 1 − β, so that every key is forgotten a little at each token.
            The delta rule forgets along k alone: β k (Sᵀ k)ᵀ is what goes.""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: (1 - b) * S + b * k * value,
        ),
        mistake("""the state fades
            You multiply the state by a number below 1 before it is corrected. That is the gated
            form, which has a decay for each token; here nothing fades.""")
        .by(fade_before(0.9))
        .by_any(fade_before, Between(0.05, 0.999)),
        mistake("""what is new fades, too
            You multiply the state by a number below 1 after the token was written, so that what is
            new fades as well. Here nothing fades; in the gated form the state fades *before* the
            token comes.""")
        .by(fade_afterwards(0.9))
        .by_any(fade_afterwards, Between(0.05, 0.999)),
        mistake("""the error has the other sign
            You add Sᵀ k − v, which makes every error larger. The error is what is wanted less what
            is there: v − Sᵀ k.""").by(error=lambda value, state, key: key.mT @ state - value),
        mistake("""what is there is added
            You add what the state answers to the value. It is subtracted: v − Sᵀ k.""").by(
            error=lambda value, state, key: value + key.mT @ state
        ),
        mistake("""the state is turned round
            You read or ask S where Sᵀ is meant: the state is (d_k, d_v), and `key @ state` gives
            d_v numbers.""")
        .by(read=lambda query, state: query @ state.mT)
        .by(error=lambda value, state, key: value - key.mT @ state.mT),
        mistake("""the state is never carried on
            Every token begins with a state of zeros, so that a query reads its own token alone.
            The state goes on from token to token.""").by(
            fade=lambda state, key, beta: torch.zeros_like(state)
        ),
        mistake("""all queries read the last state
            You write all tokens first and read then. Query t reads the state after token t, and
            knows nothing of later ones.""").by(
            finish=lambda outputs, states, query: query @ states[-1]
        ),
        mistake("""the last token alone
            You return what the last query reads. Each token has its output: `(..., n, d_v)`.""")
        .by(finish=lambda outputs, states, query: outputs[-1])
        .by(finish=lambda outputs, states, query: outputs[-1].squeeze(-2)),
        mistake("""the states come back
            You return states, (d_k, d_v) each. Return what each query reads of them.""").by(
            finish=lambda outputs, states, query: torch.stack(states, -3)
        ),
        mistake("""divided by a sum
            You divide the outputs by a sum, as linear attention does. The delta rule has no
            normaliser: what is read is put out as it is.""")
        .by(finish=divide_by_sums)
        .by(
            read=lambda query, state: query @ state / (state.abs().sum((-2, -1), keepdim=True) + 1)
        ),
        mistake("""features in place of keys
            You take elu + 1, or another function, of queries and keys, as linear attention does.
            Here they are taken as they come.""")
        .by(keys=lambda key: F.elu(key) + 1, queries=lambda query: F.elu(query) + 1)
        .by(keys=lambda key: key.relu(), queries=lambda query: query.relu())
        .by(keys=lambda key: F.silu(key), queries=lambda query: F.silu(query)),
        mistake("""β through a sigmoid
            You take the sigmoid of β. That is how a layer makes it; here it is a number from 0 to 1
            already.""").by(strength=lambda beta: beta.sigmoid()),
        mistake("""one β for all tokens
            You use the first β, or their mean, for all tokens. Token t has β_t.""")
        .by(strength=lambda beta: beta[..., :1].expand_as(beta))
        .by(strength=lambda beta: beta.mean(-1, keepdim=True).expand_as(beta)),
        mistake("""the tokens run backwards
            You go through the tokens from the last to the first. The state begins before the first.
        """).by(
            keys=lambda key: key.flip(-2),
            queries=lambda query: query.flip(-2),
            values=lambda value: value.flip(-2),
            strength=lambda beta: beta.flip(-1),
            finish=lambda outputs, states, query: torch.cat(outputs[::-1], -2),
        ),
        mistake("""the state begins as the identity
            Your state begins with ones. It begins with zeros: nothing is known.""")
        .by(
            begin=lambda key, value: (
                torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :])
                + torch.eye(key.shape[-1], value.shape[-1], dtype=key.dtype)
            )
        )
        .by(
            begin=lambda key, value: torch.ones_like(key[..., 0, :, None] * value[..., 0, None, :])
        ),
        mistake("""the gradient is cut off
            You `.detach()` the state or the error, or take `.data`, so that no token learns from
            what was written before.""")
        .by(fade=lambda state, key, beta: state.detach())
        .by(
            error=lambda value, state, key: (value - key.mT @ state).detach(),
        )
        .by(strength=lambda beta: beta.detach()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of the values.""").by(
            keys=lambda key: key.float(),
            queries=lambda query: query.float(),
            values=lambda value: value.float(),
            strength=lambda beta: beta.float(),
        ),
    ),
)
