"""Make the verbs of one noun, such as `retoma limits list`, from the functions of its service.

A verb takes what its service function takes and explains itself by its docstring. Both are read from the source of
the service: `--help` must not import the engine.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from retoma.console.exits import Stop
from retoma.console.options import ARGUMENTS, OPTIONS, AsJson, Database
from retoma.words import Said, tell

SERVICES = Path(__file__).parents[1] / "services"
ACTOR = "cli"
# What a service function needs, by the name of its parameter; nobody types these.
GIVEN = frozenset({"app", "access", "vault", "chosen", "actor"})

Show = Callable[[Any, SimpleNamespace], str | None]


class Noun:
    """A group of verbs over one service."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

    def verb(
        self,
        function: str,
        name: str,
        *,
        shows: Show,
        document: Callable[[Any, SimpleNamespace], Any] | None = None,
        takes: Mapping[str, Any] | None = None,
        interrupted: Callable[[SimpleNamespace], Said] | None = None,
        refuses: Callable[[Any], Stop | None] | None = None,
        also: Mapping[str, Any] | None = None,
        prepares: Callable[..., None] | None = None,
    ) -> None:
        """Add a verb over a service function.

        `shows`: prints the result for a person, or returns the sentence to print. `document`: what `--json` prints,
        where that is not the result. `takes`: for a parameter its type for Typer, or only its help.
        `interrupted`: what holds after Ctrl-C. `refuses`: how a verb fails whose result, though shown, is no good one.
        `also`: options that the function does not take, for `prepares`, which is called with the opened app.
        """
        node = _functions(self.service)[function]
        strange = {*(takes or {})} - {*_names(node)}
        if strange:
            raise ValueError(f"{function} takes no {', '.join(sorted(strange))}")
        extra = [_parameter(name, option, None) for name, option in (also or {}).items()]
        typed = [*_typed(node, takes or {}), *extra]

        def run(*, database: str | None, json: bool, **typed: Any) -> None:
            from retoma.console.kit import ask_service, print_json

            given = SimpleNamespace(**typed)
            called = getattr(import_module(f"retoma.services.{self.service}"), function)
            result = ask_service(
                database,
                called,
                {name: value for name, value in typed.items() if name not in (also or ())},
                needs=GIVEN & {*_names(node)},
                prepare=partial(prepares, given=given) if prepares else None,
                interrupted=interrupted and interrupted(given),
            )
            if json:
                print_json(document(result, given) if document else result)
            elif (said := shows(result, given)) is not None:
                print(said)
            if refuses is not None and (stop := refuses(result)) is not None:
                raise stop

        common = {"database": (Database, None), "json": (AsJson, False)}
        parameters = [*typed, *(_parameter(name, *each) for name, each in common.items())]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = ast.get_docstring(node)
        self.typer.command(name)(run)


class Rows:
    """Show a list as a table: a heading and a cell for each column; a sentence where it is empty."""

    def __init__(
        self,
        heads: Sequence[str],
        row: Callable[[Any], Sequence[Any]],
        *,
        none: str | None = None,
        more: Callable[[Any], str] | None = None,
    ) -> None:
        self._heads, self._row, self._none, self._more = heads, row, none, more

    def __call__(self, found: Sequence[Any], given: SimpleNamespace) -> None:
        from retoma.console.kit import console

        if not found and self._none is not None:
            console().print(tell(self._none))
            return
        self.print(found)
        self.print_more(found, given)

    def print(self, found: Sequence[Any]) -> None:
        from retoma.console.kit import print_rows

        print_rows(self._heads, map(self._row, found))

    def print_more(self, found: Sequence[Any], given: SimpleNamespace) -> None:
        """Say how the next page is asked for, where this one is full."""
        from retoma.console.kit import console

        if self._more is not None and len(found) == given.limit:
            console().print(tell(self._more(found[-1])))


def _typed(node: ast.AsyncFunctionDef, takes: Mapping[str, Any]) -> Sequence[Parameter]:
    """What a person types for a function."""
    plain = node.args.args
    defaults = [None] * (len(plain) - len(node.args.defaults)) + [*node.args.defaults]
    each = zip(
        [*plain, *node.args.kwonlyargs], [*defaults, *node.args.kw_defaults], strict=True
    )
    return [
        _parameter(
            arg.arg,
            _option(arg, takes.get(arg.arg), is_needed=default is None),
            Parameter.empty if default is None else ast.literal_eval(default),
        )
        for arg, default in each
        if arg.arg not in GIVEN
    ]


def _option(arg: ast.arg, told: Any, *, is_needed: bool) -> Any:
    if told is not None and not isinstance(told, str):
        return told
    known = (ARGUMENTS if is_needed else OPTIONS).get(arg.arg)
    if known is not None and told is None:
        return known
    type_ = eval(ast.unparse(arg.annotation or ast.Constant("str")), {})  # noqa: S307 — our own source
    return Annotated[type_, typer.Option(help=told)]


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _names(node: ast.AsyncFunctionDef) -> Sequence[str]:
    return [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]


@cache
def _functions(service: str) -> dict[str, ast.AsyncFunctionDef]:
    module = ast.parse((SERVICES / f"{service}.py").read_text(encoding="utf-8"))
    return {each.name: each for each in module.body if isinstance(each, ast.AsyncFunctionDef)}
