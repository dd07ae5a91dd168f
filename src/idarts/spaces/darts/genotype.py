"""DARTS genotypes: four lists, and the Python text of them that papers print.

The order of two edges into one node, and of the concatenated nodes, has no meaning (a node is a sum): a record holds
them sorted, and so does a genotype made from it.
"""

import ast
import warnings
from collections.abc import Iterable, Sequence
from reprlib import repr as short
from typing import Any, NamedTuple

from idarts.arch import Architecture, Cell, Edge
from idarts.errors import InputError
from idarts.spaces.darts.cells import SPACE

_SHAPE = "Genotype(normal=[('op', predecessor), …], normal_concat=range(2, 6), reduce=[…], reduce_concat=range(2, 6))"
_LONGEST_RANGE = 1000  # `range(10**9)` in a text must not fill the memory


class Genotype(NamedTuple):
    """DARTS' own form: two (operation, predecessor) pairs per node, and the nodes that are concatenated."""

    normal: list[tuple[str, int]]
    normal_concat: list[int]
    reduce: list[tuple[str, int]]
    reduce_concat: list[int]


def from_genotype(
    normal: Sequence[Any], normal_concat: Iterable[int], reduce: Sequence[Any], reduce_concat: Iterable[int]
) -> Architecture:
    """The record of a genotype; give a named tuple as `from_genotype(*genotype)`.

    >>> pair = [("skip_connect", 0), ("sep_conv_3x3", 1)]
    >>> from_genotype(pair, [2], pair, [2]).cells["normal"].edges[1]
    Edge(source=1, target=2, op='sep_conv_3x3')
    >>> from_genotype(pair, [2], [("skip_connect", 0), ("none", 2)], [2])
    Traceback (most recent call last):
    idarts.errors.InputError: reduce: node 2 takes its input from node 2, expected a predecessor from 0 to 1
    """
    cells = {"normal": _cell("normal", normal, normal_concat), "reduce": _cell("reduce", reduce, reduce_concat)}
    return Architecture(SPACE, cells)


def to_genotype(architecture: Architecture) -> Genotype:
    """The genotype of a DARTS record.

    >>> from idarts.arch import registry
    >>> to_genotype(registry.entry("DARTS_V2").architecture).normal[:2]
    [('sep_conv_3x3', 0), ('sep_conv_3x3', 1)]
    """
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} has no DARTS genotype")
    normal, reduce = architecture.cells["normal"], architecture.cells["reduce"]
    return Genotype(_pairs(normal), list(normal.output), _pairs(reduce), list(reduce.output))


def parse(form: object) -> Architecture | None:
    """The architecture of a text that looks like a genotype."""
    return from_text(form) if isinstance(form, str) and "Genotype" in form and "(" in form else None


def from_text(text: str) -> Architecture:
    """The record of a genotype as Python text, read without evaluating it.

    >>> cell = "[('skip_connect', 0), ('none', 1)]"
    >>> text = f"BEST = Genotype(normal={cell}, normal_concat=range(2, 3), reduce={cell}, reduce_concat=[2])"
    >>> to_genotype(from_text(text)).normal_concat
    [2]
    """
    call = _call(text)
    fields: dict[str, ast.expr] = {}
    for name, value in [*zip(Genotype._fields, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]:
        if name not in Genotype._fields or name in fields:
            raise InputError(f"genotype: unexpected {'**' if name is None else name}, expected {_SHAPE}")
        fields[name] = value
    missing = [name for name in Genotype._fields if name not in fields]
    if missing or len(call.args) > len(Genotype._fields):
        raise InputError(f"genotype: {missing[0] + ' is missing' if missing else 'too many parts'}, expected {_SHAPE}")
    return from_genotype(**{name: _literal(name, value) for name, value in fields.items()})


def to_text(architecture: Architecture) -> str:
    """The genotype as Python text that DARTS' own code reads.

    >>> from idarts.arch import registry
    >>> to_text(registry.entry("DARTS_V2").architecture)[:63]
    "Genotype(normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('se"
    """
    parts = to_genotype(architecture)._asdict()
    for name in ("normal_concat", "reduce_concat"):
        nodes = range(parts[name][0], parts[name][-1] + 1)
        parts[name] = nodes if list(nodes) == parts[name] else parts[name]
    return f"Genotype({', '.join(f'{name}={value!r}' for name, value in parts.items())})"


def _cell(name: str, pairs: Any, concat: Any) -> Cell:
    if not isinstance(pairs, (list, tuple)) or len(pairs) % 2 or not pairs:
        raise InputError(f"{name} is {short(pairs)}, expected two (operation, predecessor) pairs for each node")
    edges = []
    for position, pair in enumerate(pairs):
        node = 2 + position // 2
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InputError(f"{name}: node {node} has {short(pair)}, expected a pair such as ('sep_conv_3x3', 0)")
        op, source = pair
        if isinstance(source, bool) or not isinstance(source, int) or not 0 <= source < node:
            expected = f"expected a predecessor from 0 to {node - 1}"
            raise InputError(f"{name}: node {node} takes its input from node {short(source)}, {expected}")
        edges.append(Edge(source, node, op))
    try:
        return Cell(2 + len(pairs) // 2, edges, concat)
    except InputError as error:
        raise InputError(f"{name}_concat: {error}") from None


def _pairs(cell: Cell) -> list[tuple[str, int]]:
    return [(edge.op or "", edge.source) for edge in cell.edges]


def _call(text: str) -> ast.Call:
    """The call in `Genotype(...)` or `NAME = Genotype(...)`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in a string warn; no operation has one
            body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"not a genotype: {reason}; expected {_SHAPE}") from None
    value = body[0].value if len(body) == 1 and isinstance(body[0], (ast.Expr, ast.Assign)) else None
    if not isinstance(value, ast.Call):
        raise InputError(f"not a genotype: {short(text)}, expected {_SHAPE}")
    name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", None)
    if name != "Genotype":
        raise InputError(f"not a genotype: a call of {short(name)}, expected {_SHAPE}")
    return value


def _literal(name: str, value: ast.expr) -> Any:
    """Lists, tuples, strings and numbers as they stand, and `range(…)` of whole numbers."""
    try:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.keywords:
            if value.func.id in ("list", "tuple") and len(value.args) == 1:
                return _literal(name, value.args[0])
            if value.func.id == "range":
                return list(range(*(ast.literal_eval(number) for number in value.args))[:_LONGEST_RANGE])
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"genotype: {name} is neither a list nor a range, expected {_SHAPE}") from None
