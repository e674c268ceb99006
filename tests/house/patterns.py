"""Every regular expression of the tree, and inputs that make a slow one slow.

`python -m tests.house.patterns FILE` feeds all of them and writes what it found; a pattern that takes for ever is
the last one that FILE names.
"""

import ast
import functools
import importlib
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from re import _constants as constants  # the parser of the standard library
from re import _parser as parser
from types import ModuleType
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from retoma.apps.matches import sites
from tests.house.files import SOURCE

FUNCTIONS: Final = frozenset(
    ("compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer")
)
METHODS: Final = FUNCTIONS - {"compile"}
# What looks for its pattern at each place of a text, and what looks at one place alone.
ANYWHERE: Final = frozenset(("search", "sub", "subn", "split", "findall", "finditer"))
# Patterns that are used by another name than their own.
USED_AS: Final[Mapping[str, set[str]]] = {
    "retoma.apps.ads.clients.passed_over.MARK": {"match"},
    "retoma.apps.ads.clients.passed_over.BRACKET": {"match"},
    "retoma.apps.ads.clients.passed_over.END": {"match"},
    "retoma.apps.ads.clients.passed_over.NO_END": {"match"},
}

SMALLEST: Final = 16  # characters: what doubles its time with each of them is seen there
LARGEST: Final = 1 << 13
ENOUGH: Final = 0.01  # seconds of CPU, from which on a ratio tells
TOO_LONG: Final = (
    0.5  # seconds of CPU for one input: nothing of so many characters may take that
)
KINDS: Final = 12  # of characters that are fed; a pattern tells few apart
PAIRED: Final = 6  # of them that are fed in pairs
BEGINNINGS: Final = 5
STEEPEST: Final = 2.9  # times the CPU for twice the input: 2 is linear, 4 is quadratic
POOL: Final = [*map(chr, range(128)), *"éªß²Ωж中٣\u0300\u2003\u2028😀"]


class Found(NamedTuple):
    """A pattern of the tree, and how it is used."""

    where: str
    pattern: "re.Pattern[Any] | str"  # a str: pydantic matches it, not `re`
    anywhere: bool
    whole: bool


@dataclass(frozen=True)
class Slow:
    """An input for which a pattern takes more than twice as long when it is twice as long."""

    where: str
    pattern: str
    pump: str
    length: int
    seconds: float
    ratio: float

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.pattern!r:.100} takes {self.seconds:.3f} s for {self.length} characters of"
            f" {self.pump!r:.60}, {self.ratio:.1f} times as long as for half of them"
        )


# — which there are —


def collect(folder: Path = SOURCE, package: str = "retoma") -> list[Found]:
    """All patterns of a package. Raises where one cannot be told from its text."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.py"))
    }
    used = _used(trees.values())
    found: list[Found] = []
    for path, tree in trees.items():
        if any(_is_pattern(node) for node in ast.walk(tree)):
            name = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
            found += _of_module(name.removesuffix(".__init__"), tree, used)
    return list(dict.fromkeys(found))


def _is_pattern(node: ast.AST) -> bool:
    return _called(node) is not None or _validated(node) is not None


def _called(node: ast.AST) -> tuple[str, ast.expr] | None:
    """Which function of `re` is called, with which pattern."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=[pattern, *_]
        ) if name in FUNCTIONS:
            return name, pattern
    return None


def _validated(node: ast.AST) -> ast.expr | None:
    """A pattern that a model or a route is declared with."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg in ("pattern", "regex"):
                return keyword.value
    return None


def _used(trees: Iterable[ast.Module]) -> Mapping[str, set[str]]:
    """By the name of a pattern, what is asked of it anywhere."""
    used: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                called = _last_name(node.value)
                if called is not None:
                    used.setdefault(called, set()).add(node.attr)
    return used


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
        case _:
            return None


def _of_module(name: str, tree: ast.Module, used: Mapping[str, set[str]]) -> Iterator[Found]:
    module = importlib.import_module(name)
    held = list(_held(vars(module), set()))
    for node, within, target in _nodes(tree):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        called, validated = _called(node), _validated(node)
        if called is not None:
            function, expression = called
            methods = {function} if function != "compile" else used.get(target or "", set())
            methods = USED_AS.get(f"{name}.{within or target}", methods)
            anywhere = not methods or bool(methods & ANYWHERE)
            whole = not methods or bool(methods - ANYWHERE)
            for pattern in _values(
                module, node, expression, within, held, function == "compile"
            ):
                yield Found(where, pattern, anywhere, whole)
        elif validated is not None:
            value = _evaluated(module, validated)
            if isinstance(value, re.Pattern):
                value = value.pattern
            if isinstance(value, str):
                yield Found(where, value, anywhere=True, whole=False)
            elif value is not None or not isinstance(validated, ast.Constant):
                raise AssertionError(f"{where}: which pattern is this?")


def _nodes(
    tree: ast.AST, within: str | None = None, target: str | None = None
) -> Iterator[tuple[ast.AST, str | None, str | None]]:
    """Each with the function it stands in, and the name that it is given."""
    for child in ast.iter_child_nodes(tree):
        inside, named = within, target
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                inside, named = name, None
            case ast.Assign(targets=[ast.Name(id=name)]):
                named = name
            case ast.AnnAssign(target=ast.Name(id=name)):
                named = name
            case ast.Call():
                yield child, within, target
            case _:
                pass
        yield from _nodes(child, inside, named)


def _evaluated(module: ModuleType, expression: ast.expr) -> Any:
    code = compile(ast.Expression(expression), module.__name__, "eval")
    try:
        return eval(code, dict(vars(module)))  # noqa: S307  # our own code
    except NameError:
        return None


def _values(
    module: ModuleType,
    call: ast.AST,
    expression: ast.expr,
    within: str | None,
    held: "list[re.Pattern[Any]]",
    compiled: bool,
) -> "Iterable[re.Pattern[Any]]":
    if (made := MADE.get((module.__name__, within or ""))) is not None:
        return [re.compile(each, re.DOTALL) for each in made()]
    if compiled and isinstance(call, ast.Call):
        whole = _evaluated(module, call)
        if isinstance(whole, re.Pattern):
            return [whole]
    value = _evaluated(module, expression)
    if isinstance(value, str | bytes):
        return [re.compile(value)]
    if isinstance(value, re.Pattern):
        return [value]
    if within is None and held:  # one of several that a comprehension makes: they are there
        return held
    raise AssertionError(f"{module.__name__}:{within}: say in MADE which patterns it makes")


def _held(value: Any, seen: set[int]) -> "Iterator[re.Pattern[Any]]":
    """The compiled patterns that a module keeps, however deep."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _held(each, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _held(each, seen)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _held(getattr(value, field.name, None), seen)


def _match_paths() -> Iterator[str]:
    for site in sites.sites().values():
        yield site.match_path.format(league=re.escape(site.league.key))


# Patterns that are made of what a function is given: as they come out for what it may be given.
MADE: Final[Mapping[tuple[str, str], Callable[[], Iterable[str]]]] = {
    ("retoma.apps.matches.sites", "match_url"): _match_paths,
    ("retoma.apps.embeddings.vectors.spans", "spans_of"): lambda: [
        rf"(?<![^\W_])(?:{'|'.join('a' * n for n in range(32, 2, -1))})[^\W_]*"
    ],
}


# — what is fed to them —


def inputs(pattern: str | bytes, flags: int) -> dict[str, tuple[str, str, str]]:
    """Beginnings, what is repeated, and ends: what a pattern repeats, and each kind of character it tells
    apart, alone and in pairs."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    text = text.replace(r"\z", r"\Z")  # as Rust writes it
    parsed = parser.parse(
        text, flags & ~(re.LOCALE | re.UNICODE) if isinstance(pattern, bytes) else flags
    )
    atoms = list(_atoms(parsed))
    kinds: dict[tuple[bool, ...], str] = {}
    for each in (*POOL, *_named(atoms)):
        kinds.setdefault(tuple(_is_in(atom, each, flags) for atom in atoms), each)
    alphabet = [each for sign, each in kinds.items() if any(sign)][:KINDS]
    stranger = next((each for sign, each in kinds.items() if not any(sign)), "\0")
    begins = [*dict.fromkeys(("", *_beginnings(parsed, flags)))][-BEGINNINGS:]
    pumps = dict.fromkeys((*alphabet, *_bodies(parsed, flags)))
    pairs = {a + b for a in alphabet[:PAIRED] for b in alphabet[:PAIRED] if a != b}
    found = {}
    for pump in [*pumps, *sorted(pairs - pumps.keys())]:
        for begin in begins if pump in pumps else [""]:
            found[f"{begin}({pump})*{stranger}"] = (begin, pump, stranger)
    return found


def _atoms(parsed: Any) -> Iterator[Any]:
    for op, value in parsed:
        if op in (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY):
            yield op, value
        else:
            for inside in _inside(op, value):
                yield from _atoms(inside)


def _named(atoms: Iterable[Any]) -> Iterator[str]:
    """The characters that a pattern names, alone, in a set, or as the ends of a range."""
    for op, value in atoms:
        match op:
            case constants.LITERAL | constants.NOT_LITERAL:
                yield chr(value)
            case constants.RANGE:
                yield from map(chr, value)
            case constants.IN:
                yield from _named(value)
            case _:
                pass


def _inside(op: Any, value: Any) -> list[Any]:
    match op:
        case constants.MAX_REPEAT | constants.MIN_REPEAT | constants.POSSESSIVE_REPEAT:
            return [value[2]]
        case constants.SUBPATTERN:
            return [value[3]]
        case constants.BRANCH:
            return list(value[1])
        case constants.ASSERT | constants.ASSERT_NOT:
            return [value[1]]
        case constants.ATOMIC_GROUP:
            return [value]
        case constants.GROUPREF_EXISTS:
            return [each for each in value[1:] if each is not None]
        case _:
            return []


@functools.cache
def _category(name: str) -> "re.Pattern[str]":
    known = {
        "DIGIT": r"\d",
        "NOT_DIGIT": r"\D",
        "SPACE": r"\s",
        "NOT_SPACE": r"\S",
        "WORD": r"\w",
    }
    return re.compile(known.get(name.removeprefix("CATEGORY_"), r"\W"))


def _is_in(atom: Any, character: str, flags: int) -> bool:
    op, value = atom
    both = (character,) if not flags & re.IGNORECASE else (character.lower(), character.upper())
    return any(_means(op, value, each) for each in both if len(each) == 1)


def _means(op: Any, value: Any, character: str) -> bool:
    match op:
        case constants.LITERAL:
            return bool(ord(character) == value)
        case constants.NOT_LITERAL:
            return bool(ord(character) != value)
        case constants.ANY:
            return character != "\n"
        case constants.RANGE:
            return bool(value[0] <= ord(character) <= value[1])
        case constants.CATEGORY:
            return _category(str(value)).match(character) is not None
        case _:
            negated = bool(value) and value[0][0] is constants.NEGATE
            others = (each for each in value if each[0] is not constants.NEGATE)
            return negated != any(_means(kind, each, character) for kind, each in others)


def _sample(parsed: Any, flags: int) -> str:
    """A text that may match, as short as it gets with each repeated part once."""
    made = ""
    for op, value in parsed:
        match op:
            case constants.LITERAL:
                made += chr(value)
            case constants.IN | constants.NOT_LITERAL | constants.ANY:
                made += next(
                    (
                        each
                        for each in reversed(POOL[32:127])
                        if _is_in((op, value), each, flags)
                    ),
                    "",
                )
            case constants.MAX_REPEAT | constants.MIN_REPEAT | constants.POSSESSIVE_REPEAT:
                made += _sample(value[2], flags) * min(max(value[0], 1), 100)
            case constants.BRANCH:
                made += _sample(value[1][0], flags)
            case constants.ASSERT | constants.ASSERT_NOT | constants.AT:
                pass
            case _:
                made += "".join(_sample(each, flags) for each in _inside(op, value))
    return made


def _bodies(parsed: Any, flags: int) -> Iterator[str]:
    """Samples of what is repeated, by each of its branches, and of all of it."""
    yield _sample(parsed, flags)
    for op, value in parsed:
        if op in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            yield _sample(value[2], flags)
        if op is constants.BRANCH:
            yield from (_sample(each, flags) for each in value[1])
        for inside in _inside(op, value):
            yield from _bodies(inside, flags)


def _beginnings(parsed: Any, flags: int) -> Iterator[str]:
    """What comes before each repeated part."""
    before = ""
    for op, value in parsed:
        if op in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            yield before
        for inside in _inside(op, value):
            for each in _beginnings(inside, flags):
                yield before + each
        before += _sample([(op, value)], flags)


# — what it costs —


def slow_inputs(found: Found) -> Iterator[Slow]:
    """At most one for each way of use."""
    if isinstance(found.pattern, str):
        text, flags = found.pattern, 0
        ways = [_validating(text)]
    else:
        text, flags = found.pattern.pattern, found.pattern.flags
        ways = [
            *([functools.partial(_everywhere, found.pattern)] if found.anywhere else []),
            *([found.pattern.fullmatch, found.pattern.match] if found.whole else []),
        ]
    fed = inputs(text, flags)
    for way in ways:
        for begin, pump, end in fed.values():
            slow = _grown(way, begin, pump, end, isinstance(text, bytes))
            if slow is not None:
                yield Slow(found.where, str(text), f"{begin}({pump})*{end}", *slow)
                break


def _everywhere(pattern: "re.Pattern[Any]", text: Any) -> None:
    for _ in pattern.finditer(text):
        pass


def _validating(pattern: str) -> Callable[[str], object]:
    adapter: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=pattern)])

    def validate(text: str) -> object:
        try:
            return adapter.validate_python(text)
        except ValidationError:
            return None

    return validate


def _grown(
    way: Callable[[Any], object], begin: str, pump: str, end: str, is_bytes: bool
) -> tuple[int, float, float] | None:
    """Length, CPU and ratio where it grows faster than its input; None where it does not."""
    if not pump:
        return None
    length, before = SMALLEST, 0.0
    while length <= LARGEST:
        text: Any = begin + pump * (length // len(pump) + 1) + end
        text = text.encode("utf-8", "replace") if is_bytes else text
        taken = _cpu(way, text)
        if taken >= TOO_LONG:
            return len(text), taken, math.inf
        if taken >= ENOUGH:
            # Measured again: whoever took the processor for a moment is not to blame.
            half: Any = begin + pump * (length // 2 // len(pump) + 1) + end
            half = half.encode("utf-8", "replace") if is_bytes else half
            taken = min(taken, _cpu(way, text), _cpu(way, text))
            before = min(_cpu(way, half) for _ in range(3))
            ratio = taken / max(before, 1e-6)
            if taken >= ENOUGH and ratio > STEEPEST:
                return len(text), taken, ratio
        length *= 2
    return None


def _cpu(way: Callable[[Any], object], text: Any) -> float:
    """Seconds of CPU; as many as it was given where it was stopped. `re` hears of a signal while it matches."""
    began = time.thread_time()
    signal.setitimer(signal.ITIMER_PROF, TOO_LONG)
    try:
        way(text)
    except TookTooLong:
        return TOO_LONG
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.thread_time() - began


class TookTooLong(BaseException):
    """Raised in the middle of a match."""


def _stop(*_: object) -> None:
    raise TookTooLong


@contextmanager
def stopping() -> Iterator[None]:
    """What takes too long is stopped as long as this lasts."""
    before = signal.signal(signal.SIGPROF, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def main(told: Path, only: Collection[str] = ()) -> None:
    with stopping(), told.open("w", encoding="utf-8", buffering=1) as file:
        for found in collect():
            if only and not any(each in found.where for each in only):
                continue
            text = found.pattern if isinstance(found.pattern, str) else found.pattern.pattern
            file.write(f"feeding {found.where}: {text!r}\n")
            for slow in slow_inputs(found):
                file.write(f"slow {slow}\n")
        file.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
