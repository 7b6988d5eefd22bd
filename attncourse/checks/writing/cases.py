"""Cases as tables: a row says what is special about one case, all other numbers are drawn.

    scores = CaseTable({"query": "... m d_k", "key": "... n d_k"})
    scores.criterion("batches", 2).on(row("m=5 n=7 d_k=4", batch=(2, 3), turned=True))

``standard`` has the rows that every exercise needs. ``tools/grid.py`` lists the kinds of input
that cases have to cover, and those that an exercise lacks.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np

from attncourse.checks.callers import each_gradient
from attncourse.checks.exercise import Case, Criterion, Rng, call_it

FLOATS_ONLY = ("integers in *", "Results keep the floating dtype of what came in.")
ONE_MASK = "one mask for all, as many queries as sequences"
SCATTERED = "batches that are not contiguous in memory"
OTHER_NUMBERS = "a second call with other numbers"
SEQUENCES = ("m", "n")  # the axes of tokens; those of features begin with d


def normal(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return normally distributed numbers of a shape."""
    return rng.normal(size=shape)


def between(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers between −1 and 1, for scores that stay below 50."""
    return rng.uniform(-1, 1, shape)


def holes(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a random boolean mask, True where allowed, whose last axis are keys.

    Of three keys or more a row allows two at least and forbids one at least; of two it allows one.
    A single allowed key has weight 1 whatever its score, which hides mistakes.
    """
    mask = rng.random(shape) < 0.6
    rank = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    forbidden = min(2, shape[-1] - 1)
    return (mask | (rank < forbidden)) & (rank != max(forbidden, 1))


@dataclass(frozen=True)
class Drawn:
    """An array argument: its axes, ``... m d_k``, and how its entries are drawn.

    The dots are the row's batch axes. An axis may be a number or a product, ``h*d_head``.
    """

    axes: str
    how: Callable[[Rng, tuple[int, ...]], np.ndarray] = between


@dataclass(frozen=True)
class Count:
    """A whole number as an argument: the length of an axis, or a product, ``rows*patch``."""

    axis: str


def hole(axes: str) -> Drawn:
    """Return the argument that is a mask with these axes, drawn by ``holes``."""
    return Drawn(axes, holes)


@dataclass(frozen=True)
class Row:
    """The lengths of a case's axes, and its special properties.

    ``turned_row``: the arrays' axes lie in memory in the reverse order. ``factor``: by what all
    arguments, or those named, are multiplied. ``zero``: ends of the names of arguments or weights
    that are 0. ``cancel``: each array's rows add up to 0. ``arguments``: further ones, by name.
    ``options`` go to a module's constructor, ``then`` are the lengths of a second call.
    """

    sizes: Mapping[str, int]
    batch: tuple[int, ...] = ()
    turned: bool = False
    dtype: str = "float64"
    factor: float | Mapping[str, float] = 1.0
    zero: tuple[str, ...] = ()
    cancel: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    then: Mapping[str, int] | None = None
    method: str = ""
    use: Callable | None = None
    note: str = ""

    def but(self, sizes: str = "", **changed) -> "Row":
        """Return the row with some lengths, ``m=5 n=7``, and other fields changed."""
        return replace(self, sizes={**self.sizes, **parse_lengths(sizes)}, **changed)


def row(sizes: str, then: str | None = None, **special) -> Row:
    """Return a row; the axes' lengths are written as ``m=5 n=7 d_k=4``."""
    return Row(parse_lengths(sizes), then=None if then is None else parse_lengths(then), **special)


def parse_lengths(sizes: str) -> dict[str, int]:
    """Return the lengths of axes that are written as ``m=5 n=7``."""
    return {axis: int(length) for axis, length in (s.split("=") for s in sizes.split())}


@dataclass(frozen=True)
class CaseTable:
    """The cases of a function whose arguments are drawn as ``spec`` says, by name.

    ``tensors``: in torch, not NumPy. ``how`` draws arrays that do not say how.
    """

    spec: Mapping[str, str | Drawn | Count]
    tensors: bool = True
    how: Callable[[Rng, tuple[int, ...]], np.ndarray] = between

    def __call__(self, *rows: Row | Case) -> Callable[[Rng], list[Case]]:
        """Return the function that draws a criterion's cases, one for each row.

        A case in place of a row stays as it is.
        """
        return lambda rng: [r if isinstance(r, Case) else self.case(rng, r) for r in rows]

    def criterion(self, name: str, points: int) -> "TableCriterion":
        """Return a criterion that is tried ``on(row, …)``, a case for each row."""
        return TableCriterion(self, name, points)

    def case(self, rng: Rng, row: Row) -> Case:
        """Return the case of a row.

        Arguments that are drawn are positional; others in ``row.arguments`` are keywords.
        """
        drawn_arguments = {
            name: value for name, value in row.arguments.items() if isinstance(value, Drawn)
        }
        fixed_arguments = {
            name: value for name, value in row.arguments.items() if name not in drawn_arguments
        }
        args = self.arguments(rng, {**self.spec, **drawn_arguments}, row)
        return Case(tuple(args.values()), fixed_arguments, note=row.note, use=row.use or call_it)

    def arguments(self, rng: Rng, spec: Mapping, row: Row) -> dict[str, Any]:
        """Return the arguments of a specification, drawn for a row, by name."""
        return {name: self.argument(rng, name, entry, row) for name, entry in spec.items()}

    def argument(self, rng: Rng, name: str, entry: str | Drawn | Count, row: Row) -> Any:
        """Return one argument, drawn for a row: a whole number, an array or None."""
        if entry is None:  # left out, with other positional arguments after it
            return None
        if isinstance(entry, Count):
            return shape_of(entry.axis, row)[0]
        drawn = entry if isinstance(entry, Drawn) else Drawn(entry, self.how)
        array = drawn.how(rng, shape_of(drawn.axes, row))
        if array.dtype.kind == "f":
            array = with_properties(array, name, row)
        array = np.asfortranarray(array) if row.turned else array
        return to_torch(array) if self.tensors else array

    @property
    def axes(self) -> list[str]:
        """Return the names of the axes, each once."""
        written = [
            entry.axes if isinstance(entry, Drawn) else entry for entry in self.spec.values()
        ]
        names = " ".join(w for w in written if isinstance(w, str)).replace("*", " ").split()
        return [a for a in dict.fromkeys(names) if a != "..." and not a.isdigit()]

    @property
    def each_gradient(self) -> Callable:
        """Return the caller for the gradient with respect to each array of numbers by itself."""
        return each_gradient(**self.floats)

    @property
    def floats(self) -> dict[str, int]:
        """Return the places of the arguments that are arrays of numbers, by name."""
        return {n: i for i, (n, entry) in enumerate(self.spec.items()) if isinstance(entry, str)}


class TableCriterion(NamedTuple):
    """A criterion of a table that still lacks its rows."""

    table: CaseTable
    name: str
    points: int

    def on(self, *rows: Row | Case) -> Criterion:
        """Return the criterion, tried on a case for each row."""
        return Criterion(self.name, self.points, self.table(*rows))


def each_result(names: tuple[str, ...], draw_cases: Callable) -> tuple[Criterion, ...]:
    """Return a criterion of one point for each of several named results of the same cases.

    ``draw_cases`` draws the cases. An answer with one wrong result keeps the points of the others.
    """

    def draw_for(name: str) -> Callable[[Rng], list[Case]]:
        """Return the function that draws the cases, in which this result alone is compared."""
        return lambda rng: [
            replace(case, facts=partial(named_result, name)) for case in draw_cases(rng)
        ]

    return tuple(Criterion(name, 1).on(draw_for(name)) for name in names)


def named_result(name: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of one of several named results, for a case's ``facts``."""
    return {name: results[name]}


def shape_of(axes: str, row: Row) -> tuple[int, ...]:
    """Return the shape of axes that are written as ``... m d_k``, for the lengths of a row."""
    shape: list[int] = []
    for axis in axes.split():
        if axis == "...":
            shape += row.batch
        else:
            factors = axis.split("*")
            shape.append(math.prod(int(f) if f.isdigit() else row.sizes[f] for f in factors))
    return tuple(shape)


def with_properties(array: np.ndarray, name: str, row: Row) -> np.ndarray:
    """Return an argument's numbers with the row's special properties and in its dtype."""
    if row.cancel:
        array = array - array.mean(-1, keepdims=True)
    factor = row.factor if isinstance(row.factor, float | int) else row.factor.get(name, 1.0)
    array = 0 * array if is_zero(name, row) else factor * array
    return (np.rint(9 * array) if "int" in row.dtype else array).astype(row.dtype)


def is_zero(name: str, row: Row) -> bool:
    """True if the argument or weight of this name is 0 in a row."""
    return bool(row.zero) and name.endswith(row.zero)


def to_torch(array: np.ndarray) -> Any:
    """Return an array as a tensor."""
    import torch  # chapters on NumPy do without

    return torch.from_numpy(array)


@dataclass(frozen=True)
class Standard:
    """The rows that every exercise needs, for its criteria to share out.

    ``batches``: one to three batch axes, contiguous and not, with few tokens, with many, and with
    all axes of the same length. ``single``: in float32. ``integers``: only in NumPy. ``extreme``:
    large numbers, and small ones that cancel. ``gradients``: of each argument alone, only in torch.
    """

    batches: tuple[Row, ...]
    single: Row
    integers: tuple[Row, ...]
    extreme: tuple[Row, ...]
    gradients: tuple[Row, ...]

    @property
    def contiguous(self) -> tuple[Row, ...]:
        """Return the rows with contiguous batches: of one axis, and one of two axes."""
        return (*(r for r in self.batches if not r.turned), self.two_axes)

    @property
    def not_contiguous(self) -> tuple[Row, ...]:
        """Return the rows with batches whose axes lie in memory in the reverse order."""
        return tuple(r for r in self.batches if r.turned)

    @property
    def two_axes(self) -> Row:
        """Return a row with two batch axes, contiguous in memory."""
        return replace(self.batches[0], batch=(2, 3), note="two batch axes")

    @property
    def numbers(self) -> tuple[Row, ...]:
        """Return the rows with unusual numbers: in float32, integers, very large and small ones."""
        return (self.single, *self.integers, *self.extreme)


def standard(table: CaseTable, *, left_out: str = "", large: str = "", **fixed: int) -> Standard:
    """Return the standard rows for a table.

    ``fixed`` are lengths that the exercise prescribes, ``left_out`` axes that get none. ``large``
    is the argument with numbers in the millions, the first one unless named.
    """
    axes = [axis for axis in table.axes if axis not in left_out.split()]
    alone = Row(distinct_lengths(axes, fixed))
    batch = replace(alone, batch=(2,), note="a batch of 2")
    first = large or next(iter(table.floats))
    each = replace(batch, use=table.each_gradient, note="a batch of 2, each gradient alone")
    integers_row = replace(alone, dtype="int64", note="integers")
    return Standard(
        batches=(
            batch,
            row(" ".join(f"{axis}=4" for axis in axes), batch=(4,), note="every axis of length 4"),
            turned_row(alone, 19, 17, batch=(3,), note="many tokens, not contiguous in memory"),
            turned_row(alone, 1, 2, batch=(2, 3), note="two batch axes, not contiguous in memory"),
            turned_row(
                alone, 2, 3, batch=(2, 1, 3), note="three batch axes, not contiguous in memory"
            ),
        ),
        single=replace(alone, dtype="float32", note="float32"),
        integers=() if table.tensors else (integers_row,),
        extreme=(
            replace(alone, factor={first: 1e7}, note=f"{first} in the millions"),
            replace(alone, factor={first: 2e-7}, cancel=True, note="small, each row adds up to 0"),
        ),
        gradients=(each,) if table.tensors else (),
    )


def distinct_lengths(axes: list[str], fixed: Mapping[str, int]) -> dict[str, int]:
    """Return a length for each axis: the fixed ones, and others, no two alike and none 2."""
    unused_lengths = (n for n in (5, 7, 3, 11, 13, 17) if n not in fixed.values())
    return {axis: fixed[axis] if axis in fixed else next(unused_lengths) for axis in axes}


def turned_row(alone: Row, queries: int, keys: int, **changed) -> Row:
    """Return the row with so many queries and keys, and its arrays' axes reversed in memory.

    A single axis of tokens is that of the keys. No standard row has a single key: its weight is 1
    whatever its score, which hides mistakes.
    """
    tokens = [axis for axis in alone.sizes if axis in SEQUENCES]
    several = dict(zip(reversed(tokens), (keys, queries), strict=False))
    return replace(alone, sizes={**alone.sizes, **several}, turned=True, **changed)


@overload
def once_more(case: Case) -> Case: ...
@overload
def once_more(case: Row) -> Row: ...


def once_more(case: Case | Row) -> Case | Row:
    """Return a case, or row, to be the last one: the same call as the first, once more.

    It is wrong if calls in between change its result.
    """
    note = "the first call once more"
    if isinstance(case, Row):  # its case is drawn later, so ``repeats`` cannot name the first one
        return case.but(note=note)
    return replace(case, note=note, repeats=case)
