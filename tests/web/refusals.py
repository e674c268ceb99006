"""Find every sentence by which the code may refuse a request, by walking its source.

A sentence refuses where an error that is answered with 400, 413, 415 or 422 is made of it: there, in what that
expression calls, in the variables it names, and in what callers hand to its parameters.
"""

import ast
import re
import string
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from retoma.web.problems import CODES
from tests.house.files import SOURCE

# Errors that are answered with 422, and what carries the reason of one flaw; their subclasses are found.
ERRORS: Final = frozenset(
    {"BadInput", "UnknownKind", "ValueError", "Refusal", "Flaw", "_Flawed", "BadRow"}
)
STATUSES: Final = frozenset({400, 413, 415, HTTPStatus.UNPROCESSABLE_ENTITY})
LETTERS: Final = 5  # of its own that a sentence has; with fewer it only hands on another one
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Module


@cache
def refusals(source: Path = SOURCE) -> dict[str, set[str]]:
    """Each template of a sentence, and the files it stands in."""
    return _Walk(source).found


def pattern_of(template: str) -> str:
    """A regular expression that matches the sentence, whatever stands in it."""
    parts = string.Formatter().parse(template)
    return "".join(
        re.escape(text) + ("" if field is None else ".*") for text, field, _, _ in parts
    )


def _is_reason(template: str) -> bool:
    """Whether it says something of its own; with a full stop it describes a setting."""
    parts = string.Formatter().parse(template)
    letters = sum(each.isalpha() for text, *_ in parts for each in text)
    return letters >= LETTERS and not template.endswith(".")


class _Walk:
    """One walk through all of the source."""

    def __init__(self, source: Path) -> None:
        self.found: dict[str, set[str]] = defaultdict(set)
        self._functions: dict[str, list[tuple[str, Function]]] = defaultdict(list)
        self._calls: dict[str, list[tuple[str, Scope, ast.Call]]] = defaultdict(list)
        self._values: dict[ast.AST, dict[str, list[ast.expr]]] = {}
        self._modules: dict[str, ast.Module] = {}
        self._seen: set[object] = set()
        self._errors = set(ERRORS)
        for path in sorted(source.rglob("*.py")):
            place = path.relative_to(source).as_posix()
            self._index(place, ast.parse(path.read_text(encoding="utf-8")))
        self._add_subclasses()
        for name in sorted(self._errors):
            for place, scope, call in self._calls[name]:
                if name != "Refusal" or _is_answered_so(call):
                    self._expression(place, scope, call)

    # — what there is —

    def _index(self, place: str, module: ast.Module) -> None:
        self._modules[place] = module
        waiting: list[tuple[Scope, ast.AST]] = [(module, module)]
        while waiting:
            scope, node = waiting.pop()
            if isinstance(node, Function):
                self._functions[node.name].append((place, node))
                scope = node
            elif isinstance(node, ast.Call):
                self._calls[_name(node.func)].append((place, scope, node))
            values = self._values.setdefault(scope, defaultdict(list))
            for name, value in _bound(node):
                values[name].append(value)
            waiting += [(scope, each) for each in ast.iter_child_nodes(node)]

    def _add_subclasses(self) -> None:
        classes = [
            (each.name, {_name(base) for base in each.bases})
            for module in self._modules.values()
            for each in ast.walk(module)
            if isinstance(each, ast.ClassDef)
        ]
        before = 0
        while before < len(self._errors):
            before = len(self._errors)
            self._errors |= {name for name, bases in classes if bases & self._errors}

    # — what is said —

    def _expression(self, place: str, scope: Scope, expression: ast.AST) -> None:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                self._call(place, node)
            elif isinstance(node, ast.Name):
                self._variable(place, scope, node.id)

    def _call(self, place: str, call: ast.Call) -> None:
        name = _name(call.func)
        if name == "say":
            first = call.args[0]
            template = first.value if isinstance(first, ast.Constant) else None
            if isinstance(template, str) and _is_reason(template):
                self.found[template].add(place)
            return
        for where, function in self._functions[name]:
            if (where == place or len(self._functions[name]) == 1) and self._is_new(function):
                for node in ast.walk(function):
                    if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                        self._expression(where, function, node.value)

    def _variable(self, place: str, scope: Scope, name: str) -> None:
        if not self._is_new((scope, name)):
            return
        for value in self._values[scope][name]:
            self._expression(place, scope, value)
        if isinstance(scope, Function):
            self._parameter(place, scope, name)
            self._variable(place, self._modules[place], name)

    def _parameter(self, place: str, function: Function, name: str) -> None:
        """What callers hand in."""
        given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if name in ("self", "cls"):
            return
        if name not in (*given, *(each.arg for each in function.args.kwonlyargs)):
            return
        is_alone = len(self._functions[function.name]) == 1
        for where, scope, call in self._calls[function.name]:
            if where != place and not is_alone:
                continue
            values = [each.value for each in call.keywords if each.arg == name]
            if name in given:
                skipped = int(
                    given[0] in ("self", "cls") and isinstance(call.func, ast.Attribute)
                )
                values += call.args[given.index(name) - skipped :][:1]
            for value in values:
                self._expression(where, scope, value)

    def _is_new(self, what: object) -> bool:
        is_new = what not in self._seen
        self._seen.add(what)
        return is_new


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value, each with the value."""
    targets: list[ast.expr] = []
    value: ast.expr | None = None
    match node:
        case ast.Assign():
            targets, value = node.targets, node.value
        case ast.AnnAssign() | ast.NamedExpr():
            targets, value = [node.target], node.value
        case ast.For() | ast.comprehension():
            targets, value = [node.target], node.iter
        case _:
            return
    if value is not None:
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    yield each.id, value


def _is_answered_so(call: ast.Call) -> bool:
    code = call.args[0] if call.args else None
    return not isinstance(code, ast.Constant) or CODES[str(code.value)] in STATUSES
