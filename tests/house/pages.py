"""Reference pages that are written by the code they describe.

`python -m tests.house.pages` writes them anew; tests/house/test_generated_pages.py holds them to it.
"""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import retoma
from retoma.apps.ads.model import ERRORS
from retoma.cli import build
from retoma.engine.run.submission import BatchOptions, SubmitOptions
from tests.house.files import ROOT

REFERENCE = ROOT / "docs" / "reference"
AGAIN = "python -m tests.house.pages"
# Of a transaction: what is there for the stores of retoma itself.
FOR_STORES = {"ask", "finish", "for_caller", "lend", "ring", "together"}
# Of a Context: what is there for stories. The rest is what the engine asks of it.
FOR_STORIES = (
    *("step", "each", "write", "share", "remote", "kept"),
    *("use", "rate", "breaker", "progress", "attach", "cost", "log"),
    *("job", "generation", "attempt", "epoch"),
)
BESIDE = ("retoma.testing", "retoma.apps", "retoma.web")
EVERYWHERE = {"--help", "--json", "--database"}  # said once, at the head of the page


# --- The library


def library() -> Iterator[str]:
    yield "# The library"
    yield ""
    yield "What `from retoma import …` has, and what changes only with a new version; everything else may change any day. Written by"
    yield f"`{AGAIN}` from the code. A first look at it: [a first job](../howto/first-job.md)."
    for name in retoma.__all__:
        yield from told_of(name, getattr(retoma, name))
        if name == "Retoma":
            yield from groups()
    for module in BESIDE:
        yield from beside(module)


def groups() -> Iterator[str]:
    """What an app has by nouns, and how it is submitted."""
    for options in (SubmitOptions, BatchOptions):
        yield from told_of(options.__name__, options)
    for name, group in inspect.get_annotations(retoma.Retoma).items():
        yield from told_of(f"app.{name}", group)


def told_of(name: str, thing: Any) -> Iterator[str]:
    yield ""
    yield f"## {name}"
    yield ""
    yield in_one(thing)
    members = list(members_of(thing))
    if not members:
        return
    yield ""
    yield "| | |"
    yield "|---|---|"
    for said, means in members:
        yield f"| `{said}` | {means} |"


def members_of(thing: type) -> Iterator[tuple[str, str]]:
    """Its fields and verbs as its source has them, in that order; those of its bases are first."""
    for base in thing.__bases__:
        if base.__module__.startswith("retoma.db"):
            yield from members_of(base)
    node = source_of(thing)
    for each in node.body:
        name = name_of(each)
        if name is None or name.startswith("_"):
            continue
        if thing.__name__ == "Context" and name not in FOR_STORIES:
            continue
        if thing.__name__ in ("Rows", "Transaction") and name in FOR_STORES:
            continue
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            if "overload" in {ast.unparse(mark) for mark in each.decorator_list}:
                continue
            means = ast.get_docstring(each) or ""
            yield signature(each), cell(means.partition("\n\n")[0])
        elif isinstance(each, ast.AnnAssign):
            value = "" if each.value is None else f" = {ast.unparse(each.value)}"
            yield f"{name}: {ast.unparse(each.annotation)}{value}".replace("|", "\\|"), ""
        elif isinstance(each, ast.Assign):
            yield f"{name} = {ast.unparse(each.value)}", ""


def source_of(thing: type) -> ast.ClassDef:
    module = ast.parse(inspect.getsource(importlib.import_module(thing.__module__)))
    return next(
        each
        for each in module.body
        if isinstance(each, ast.ClassDef) and each.name == thing.__name__
    )


def name_of(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return None


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = {ast.unparse(each) for each in node.decorator_list}
    gives = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    if "property" in decorators:
        return f"{node.name}{gives}".replace("|", "\\|")
    taken = ast.unparse(node.args).removeprefix("self").removeprefix("cls").removeprefix(", ")
    waits = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{waits}{node.name}({taken}){gives}".replace("|", "\\|")


def beside(module: str) -> Iterator[str]:
    """A door beside the main one: its names and what each is."""
    door = importlib.import_module(module)
    yield ""
    yield f"## {module}"
    yield ""
    yield in_one(door)
    yield ""
    yield "| | |"
    yield "|---|---|"
    for name in door.__all__:
        thing = getattr(door, name)
        own = inspect.isclass(thing) or inspect.isfunction(thing)
        yield f"| `{name}` | {in_one(thing) if own else ''} |"


def in_one(thing: Any) -> str:
    """All that its docstring says, in one paragraph after another."""
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    return cell(" ".join(paragraphs))


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- The command line


def options() -> Iterator[str]:
    yield "# Every option of the command line"
    yield ""
    yield f"What each verb does, and what the exit codes mean: [the command line](cli.md). Written by `{AGAIN}` from the verbs themselves."
    yield ""
    yield "Every verb takes `--help`. Most take `--database URL` (which one; else `RETOMA_DATABASE_URL`) and `--json` (one document on standard"
    yield "output, and nothing else); they are named below only as *database* and *json*."
    for verb, command in verbs_of(build(), "retoma"):
        yield from told_of_verb(verb, command)


def verbs_of(command: Any, called: str) -> Iterator[tuple[str, Any]]:
    """Depth first, in the order of the help; asked by shape, for Typer may bring a click of its own."""
    named: Mapping[str, Any] = getattr(command, "commands", {})
    if not named or getattr(command, "invoke_without_command", False):
        yield called, command
    for name, each in named.items():
        yield from verbs_of(each, f"{called} {name}")


def told_of_verb(verb: str, command: Any) -> Iterator[str]:
    takes = [each for each in command.params if not getattr(each, "hidden", False)]
    yield ""
    yield f"## {verb}"
    yield ""
    yield cell((command.help or "").replace("\b", ""))
    also = [name[2:] for each in takes for name in each.opts if name in EVERYWHERE]
    told = [each for each in takes if not EVERYWHERE & set(each.opts)]
    if also:
        yield ""
        yield f"*{', '.join(also)}*"
    if told:
        yield ""
        yield "| option | |"
        yield "|---|---|"
    for each in told:
        yield f"| {spelled(each)} | {explained(each)} |"


def spelled(option: Any) -> str:
    if option.param_type_name == "argument":
        name = option.metavar or option.name.upper()
        return f"`{name}`" + ("" if option.required else " (may be left out)")
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    return names + (" (needed)" if option.required else "")


def explained(option: Any) -> str:
    means = cell(getattr(option, "help", None) or "")
    default = option.default
    if default is None or callable(default) or default is False or default in ("", (), []):
        return means
    if isinstance(default, int | float | str):
        return f"{means} Default: `{default}`."
    return means


# --- Codes of the applications


def codes() -> Iterator[str]:
    yield "# Codes of the applications"
    yield ""
    yield "By what a job of an application may end, beside the [engine's own codes](errors.md). Meanings are in the language of the documents that"
    yield f"define them. Written by `{AGAIN}` from the tables in the code."
    yield ""
    yield "`retry`: tried again within its budget, if it has one of its own; `bury`: a dead letter; `park`: waits for a person."
    for name in ("quotes", "documents", "embeddings", "matches"):
        table = importlib.import_module(f"retoma.apps.{name}.model").CODES
        yield ""
        yield f"## {name.capitalize()}"
        yield ""
        yield "| code | class | action | budget | meaning |"
        yield "|---|---|---|---:|---|"
        for each in table.values():
            budget = "" if each.budget is None else str(each.budget)
            cells = (f"`{each.code}`", each.error_class, each.action, budget, each.meaning)
            yield f"| {' | '.join(cells)} |"
    yield ""
    yield "## Ads"
    yield ""
    yield "A mission that has used up the budget of a phase ends with the code under *then*; the last real cause is kept beside it."
    yield ""
    yield "| code | phase | class | action | budget | then | counts against the proxy | meaning |"
    yield "|---|---|---|---|---|---|---|---|"
    for error in ERRORS.values():
        blames = "yes" if error.blames_proxy else ""
        told = (
            *(f"`{error.code}`", error.phase, error.error_class, error.action, error.budget),
            *(error.exhausted or "", blames, error.means),
        )
        yield f"| {' | '.join(told)} |"


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "library.md": library,
    "options.md": options,
    "codes.md": codes,
}


def written(lines: Iterator[str] | Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def write_all(folder: Path) -> None:
    for name, lines in PAGES.items():
        (folder / name).write_text(written(lines()), encoding="utf-8")


if __name__ == "__main__":
    write_all(REFERENCE)
