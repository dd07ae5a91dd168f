"""The faults that mutation testing plants in a file: one operator, constant, condition, argument or statement each."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
DELETED = (ast.Return, ast.Raise, ast.AugAssign, ast.Break, ast.Continue)
TYPES = ("annotation", "returns", "decorator_list")  # fields without behaviour, or with too much


@dataclass(frozen=True)
class Mutation:
    """One change of one file: the bytes from `start` to `end` become `new`."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    name: str  # the same as long as the lines are the same, wherever they stand in the file
    start: int
    end: int
    new: str


def mutations(file: str, source: bytes) -> list[Mutation]:
    """All mutations of a file."""
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    made, seen = [], Counter[str]()
    for node in _nodes(ast.parse(source)):
        for kind, part, new in _changes(node):
            first, last = part.lineno - 1, part.end_lineno - 1
            start, end = starts[first] + part.col_offset, starts[last] + part.end_col_offset
            after = source[starts[first] : start] + new.encode() + source[end : starts[last + 1]]
            shown = [" ".join(text.decode().split()) for text in (source[starts[first] : starts[last + 1]], after)]
            label = f"{file} {kind} {shown[0]} → {shown[1]}"
            seen[label] += 1
            name = hashlib.sha256(f"{label} {seen[label]}".encode()).hexdigest()[:16]
            made.append(Mutation(file, part.lineno, kind, *shown, name, start, end, new))
    return made


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that do something: not types, messages to people, or what only a type checker sees."""
    yield node
    for field, child in ast.iter_fields(node):
        for one in child if isinstance(child, list) else [child]:
            match one:
                case ast.JoinedStr() | ast.Assert() | ast.If(test=ast.Name("TYPE_CHECKING")):
                    pass
                case ast.ClassDef(bases=[ast.Name("Protocol" | "TypedDict"), *_]):
                    pass
                case ast.Expr(ast.Call(ast.Attribute(ast.Name("_diagnostics")))):
                    pass
                case ast.keyword("strict"):  # an assertion, as `assert` is
                    pass
                case ast.Raise() | ast.Expr(ast.Call(ast.Attribute(ast.Name("warnings")))):
                    yield one
                case ast.AST() if field not in TYPES:
                    yield from _nodes(one)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """What can be done to a node: a kind, the part that is replaced, and its new text."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPS:
            yield "comparison", node, _text(ast.Compare(left, [SWAPS[type(operator)]()], [right]))
        case ast.BoolOp(operator, values):
            yield "and/or", node, _text(ast.BoolOp(SWAPS[type(operator)](), values))
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            yield "arithmetic", node, _text(ast.BinOp(left, SWAPS[type(operator)](), right))
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            yield "sign", node, _text(operand)
        case ast.Constant(bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(int(value) | float(value)):
            yield "constant", node, repr(value + 1)
        case ast.If(test) | ast.While(test) | ast.IfExp(test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield "condition", test, f"(not {_text(test)})"
        case ast.Call(function, arguments, keywords):
            if len(arguments) > 1 and not isinstance(arguments[-1], ast.Starred):
                yield "argument", node, _text(ast.Call(function, arguments[:-1], keywords))
            for left_out in (keyword for keyword in keywords if keyword.arg not in (None, "strict")):
                kept = [keyword for keyword in keywords if keyword is not left_out]
                yield "argument", node, _text(ast.Call(function, arguments, kept))
        case ast.Expr(ast.Call()) | ast.Assign(
            [ast.Attribute() | ast.Subscript()]
        ):  # without a local name nothing runs
            yield "deletion", node, "pass"
        case _ if isinstance(node, DELETED):
            yield "deletion", node, "pass"


def _text(node: ast.AST) -> str:
    return f"({ast.unparse(node)})"
