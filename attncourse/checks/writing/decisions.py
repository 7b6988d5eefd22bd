"""Decisions of attention, each right unless another option is given, and modules made of them.

An exercise on attention is a composition: its bank builds an implementation out of an
``Attention`` or a ``Score``. Their wrong options stand in ``mistakes``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from attncourse.checks.exercise import composition


def as_it_is(value):
    """Return the value unchanged: the right option of decisions where nothing is to be done."""
    return value


def as_they_come(query, key, other):
    """Return query, key and value in this order: the right ``roles``."""
    return query, key, other


def products(query, key):
    """Return the product of every query with every key, ``Q Kᵀ``."""
    return query @ key.mT


def by_root_of_d_k(query, key, other):
    """Return the right default scale, ``1 / √d_k``."""
    return query.shape[-1] ** -0.5


def in_its_place(default, scale):
    """Return the scale that is used: the default only where none is given."""
    return default if scale is None else scale


def hide(scores, mask):
    """Return the scores with −∞ wherever the mask is False; unchanged without a mask."""
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def over_keys(scores):
    """Return the softmax over the keys, the last axis."""
    return scores.softmax(-1)


def times(scores, factor):
    """Return the scores times the scale."""
    return scores * factor


def as_they_are(weights, mask, factor):
    """Return the weights unchanged: nothing is right to do after the softmax."""
    return weights


def blend(weights, value):
    """Return the blended values, ``A V``."""
    return weights @ value


@dataclass(frozen=True)
class Decisions:
    """Decisions, one a field; each is right unless another option is given."""

    @classmethod
    def of(cls, options: dict[str, Any]) -> Any:
        """Return the decisions with their options out of ``options``, which loses these."""
        names = [field.name for field in fields(cls) if field.name in options]
        return cls(**{name: options.pop(name) for name in names})


@dataclass(frozen=True)
class Attention(Decisions):
    """Attention as decisions, in the order in which they are used.

    ``roles`` says which input is query, key and value. ``compare`` makes the scores. ``factor`` is
    the default scale, ``given_scale`` chooses between that and a scale argument, ``scale`` applies
    the chosen one to the scores. ``hide`` masks them, ``normalize`` makes weights of them,
    ``after`` may change these, ``mix`` blends the values. ``other`` is a third input that wrong
    options may use: the values, or the tokens that a module got.
    """

    roles: Callable = as_they_come
    compare: Callable = products
    factor: Callable = by_root_of_d_k
    given_scale: Callable = in_its_place
    scale: Callable = times
    hide: Callable = hide
    normalize: Callable = over_keys
    after: Callable = as_they_are
    mix: Callable = blend

    def weights(self, query, key, other=None, mask=None, scale=None):
        """Return the attention map ``(..., m, n)``."""
        query, key, other = self.roles(query, key, other)
        factor = self.given_scale(self.factor(query, key, other), scale)
        return self.shares(self.scale(self.compare(query, key), factor), mask, factor)

    def shares(self, scores, mask=None, factor=1.0):
        """Return the attention map of scores: masked, normalised, and what is done after."""
        return self.after(self.normalize(self.hide(scores, mask)), mask, factor)

    def output(self, query, key, value, mask=None, scale=None, other=None):
        """Return the blended values ``(..., m, d_v)``."""
        weights = self.weights(query, key, value if other is None else other, mask, scale)
        return self.mix(weights, self.roles(query, key, value)[2])


@dataclass(frozen=True)
class Score(Decisions):
    """The score of every query with every key, ``Q W Kᵀ`` or without W, as decisions.

    ``prepare`` changes both, ``through`` multiplies the query by W, ``project`` changes the key,
    ``compare`` makes the scores, ``finish`` changes those.
    """

    prepare: Callable = lambda query, key: (query, key)
    through: Callable = lambda query, W: query if W is None else query @ W
    project: Callable = lambda key, W: key
    compare: Callable = products
    finish: Callable = lambda scores, query, key: scores

    def __call__(self, query, key, W=None):
        """Return the scores of all queries with all keys, ``(..., m, n)``."""
        query, key = self.prepare(query, key)
        scores = self.compare(self.through(query, W), self.project(key, W))
        return self.finish(scores, query, key)


@composition
def dot(**options):
    """Return an implementation of the score ``Q Kᵀ``, made of the decisions of ``Score``."""
    score = Score.of(options)

    def answer(query, key):
        """Return the score of every query with every key."""
        return score(query, key)

    return answer


# --- modules -----------------------------------------------------------------------------------


def linear(sizes: dict[str, tuple[int, int]], bias: bool = False) -> dict[str, Any]:
    """Return linear layers of these sizes, (in, out), by name."""
    from torch import nn  # chapters on NumPy do without

    return {name: nn.Linear(*size, bias=bias) for name, size in sizes.items()}


def begun(self):
    """Call ``nn.Module.__init__``, as a module has to before it holds layers."""
    kind: Any = type(self)
    super(kind, self).__init__()


def assigned(self, layers):
    """Set each layer as the module's attribute of its name."""
    for name, layer in layers.items():
        setattr(self, name, layer)


def mixed(attention, views, mask, other):
    """Return the blended values: the right result of a module's ``forward``."""
    return attention.output(*views, mask, other=other)


def shared_out(attention, views, mask, other):
    """Return the attention map: the right result of a module's ``weights``."""
    return attention.weights(*views[:2], other, mask)


def module_class(name, layers, super_init=begun, hold=assigned, **methods) -> type:
    """Return a module class of this name, with these methods; one that is None is left out.

    ``layers(*sizes, **options)`` makes its layers, ``hold(self, layers)`` keeps them, and
    ``super_init(self)`` calls ``super().__init__()``.
    """
    from torch import nn  # chapters on NumPy do without

    def __init__(self, *sizes, **options):
        super_init(self)
        hold(self, layers(*sizes, **options))

    defined = {n: method for n, method in methods.items() if method is not None}
    return type(name, (nn.Module,), {"__init__": __init__, **defined})


def attention_class(
    name,
    layers,
    query,
    key,
    value,
    inputs=1,
    answer=mixed,
    shares=shared_out,
    other=None,
    **options,
):
    """Return a module class for attention, whose call takes ``inputs`` arrays and a mask.

    ``query(self, *inputs)``, ``key`` and ``value`` make query, key and value of the inputs.
    ``answer`` and ``shares`` make the results of ``forward`` and ``weights``; without one that
    method is left out. ``other(self, *inputs)`` is the attention's ``other``, by default the first
    input. Further options are decisions of ``Attention`` and arguments of ``module_class``.
    """
    attention = Attention.of(options)

    def method(compute, mixes):
        """Return the method that calls ``compute`` on the views, the value only if it ``mixes``."""

        def call(self, *inputs_and_mask):
            """Return what ``compute`` makes of the views; the mask comes last, or is left out."""
            *seen, mask = (*inputs_and_mask, None)[: inputs + 1]
            views = query(self, *seen), key(self, *seen), value(self, *seen) if mixes else None
            return compute(attention, views, mask, other(self, *seen) if other else seen[0])

        return compute and call

    forward, weights = method(answer, True), method(shares, shares is mixed)
    return module_class(name, layers, forward=forward, weights=weights, **options)
