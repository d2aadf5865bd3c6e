"""Find the mutations of a source file: small changes to one syntax node that a test should notice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

SWAPPED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
}
"""For each operator: a pattern of its source text, and its replacement."""

LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
TRANSLATORS = {"_", "gettext", "gettext_lazy", "ngettext", "pgettext", "message", "translatable"}
UNTESTED_NAMES = {"__all__", "__slots__", "__version__"}
TEXTS = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
"""Operand types that `+` concatenates. For these, `-` instead of `+` would only raise a TypeError."""


NUMERIC = (ast.Constant, ast.BinOp, ast.operator)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    kind: str
    line: int
    edits: tuple[tuple[int, int, bytes], ...]
    """Start offset, end offset and replacement of each edit, in the encoded source."""

    def apply(self, source: bytes) -> bytes:
        for start, end, new in sorted(self.edits, reverse=True):
            source = source[:start] + new + source[end:]
        return source


def find_mutations(source: bytes) -> list[Mutation]:
    """Return all mutations in source order. They leave the line numbers unchanged."""
    found = _Finder(source).visit(ast.parse(source), in_test=False)
    return sorted(found, key=lambda mutation: (mutation.line, mutation.kind, mutation.edits))


def is_sound(mutation: Mutation, source: bytes) -> bool:
    """Return whether the mutated source can be parsed and differs in more than its layout."""
    try:
        return ast.dump(ast.parse(mutation.apply(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


class _Finder:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or 0, node.end_col_offset or 0
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end_column

    def visit(self, node: ast.AST, *, in_test: bool) -> Iterator[Mutation]:
        """Yield the mutations of a node and its descendants. With `in_test`, only the node's truth value matters."""
        if _is_skipped(node):
            return
        yield from self.mutations_at(node, in_test)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            tested = name in ("test", "ifs") or (in_test and isinstance(node, ast.BoolOp)) or isinstance(node, ast.Not)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.visit(child, in_test=tested)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self.guards(value)

    def mutations_at(self, node: ast.AST, in_test: bool) -> Iterator[Mutation]:  # noqa: C901  # one case per kind of node
        match node:
            case ast.Compare():
                for operator, operands in zip(node.ops, pairwise([node.left, *node.comparators]), strict=True):
                    yield from self.swap("comparison", operator, operands)
            case ast.BoolOp():
                yield from self.swap("and/or", node.op, node.values)
                if isinstance(node.op, ast.Or) and len(node.values) == 2 and not in_test:
                    yield self.replace("default removed", node, self.text(node.values[0]))
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not any(map(_is_text, (node.left, node.right))):
                yield from self.swap("+/-", node.op, [node.left, node.right])
            case ast.UnaryOp(op=ast.Not()):
                yield self.replace("not removed", node, self.text(node).removeprefix(b"not").strip())
            case ast.Constant(value=int()) if not isinstance(node.value, bool):
                yield self.replace("integer", node, str(node.value + 1).encode())
                yield self.replace("integer", node, str(node.value - 1).encode())
            case ast.Return(value=ast.Constant(value=bool() as truth)):
                assert node.value is not None
                yield self.replace("returned bool", node.value, str(not truth).encode())
            case ast.arguments():
                for default in [*node.defaults, *node.kw_defaults]:
                    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                        yield self.replace("default argument", default, str(not default.value).encode())
            case ast.Set() | ast.Tuple() if len(node.elts) > 2 and all(map(_is_name, node.elts)):
                for element, following in pairwise(node.elts):
                    yield self.blank("name removed", self.span(element)[0], self.span(following)[0])

    def swap(self, kind: str, operator: ast.AST, operands: Sequence[ast.expr]) -> Iterator[Mutation]:
        """Replace the operator between all operands. Yield nothing if there is a comment between two of them."""
        if type(operator) not in SWAPPED:
            return
        old, new = SWAPPED[type(operator)]
        edits = []
        for left, right in pairwise(operands):
            start, end = self.span(left)[1], self.span(right)[0]
            found = re.fullmatch(rb"[\s)\\]*(%s)[\s(\\]*" % old.encode(), self.source[start:end])
            if found is None:
                return
            edits.append((start + found.start(1), start + found.end(1), new.encode()))
        yield Mutation(kind=kind, line=operands[0].lineno, edits=tuple(edits))

    def guards(self, block: Sequence[ast.stmt]) -> Iterator[Mutation]:
        """Remove guards: `if` statements that only return, raise or continue.

        The last statement of a block is kept, since removing it may change nothing.
        """
        for guard in block[:-1]:
            match guard:
                case ast.If(body=[ast.Return() | ast.Raise() | ast.Continue()], orelse=[]) if not _is_skipped(guard):
                    yield self.blank("guard removed", *self.span(guard), keep=b"pass")

    def replace(self, kind: str, node: ast.expr | ast.stmt, new: bytes) -> Mutation:
        start, end = self.span(node)
        lost = self.source[start:end].count(b"\n") - new.count(b"\n")
        return Mutation(kind=kind, line=node.lineno, edits=((start, end, new + b"\\\n" * lost),))

    def blank(self, kind: str, start: int, end: int, keep: bytes = b"") -> Mutation:
        new = keep + b"\n" * self.source[start:end].count(b"\n")
        return Mutation(kind=kind, line=self.source[:start].count(b"\n") + 1, edits=((start, end, new),))

    def text(self, node: ast.expr) -> bytes:
        start, end = self.span(node)
        return self.source[start:end]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, TEXTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_skipped(node: ast.AST) -> bool:
    """Return whether a node is not worth mutating: imports, types, log calls, translated texts, f-strings, tuning
    constants.
    """
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If():
            return any(name in ast.unparse(node.test) for name in ("TYPE_CHECKING", "__main__"))
        case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
            # A test of a constant such as `MAX_BYTES = 64 * 1024` could only repeat the number.
            return name in UNTESTED_NAMES or (
                name.isupper() and all(isinstance(part, NUMERIC) for part in ast.walk(value))
            )
        case ast.Subscript(value=ast.Name(id=name)):
            return name[:1].isupper() and not name.isupper()  # A generic type such as `Mapping[str, int]`.
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return method in LOG_METHODS and "log" in name.lower()
        case ast.Call(func=ast.Name(id=name)):
            return name in TRANSLATORS or name == "lru_cache"
    return False
