"""Every text of ours that people read: marked in the code, or shown by --help.

Also a program: `python -m tests.words.marked` prints those the catalogue lacks, ready to be filled in.
"""

import ast
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from jinja2 import Environment, nodes

from retoma.cli import build
from retoma.words import NOUNS, Language
from retoma.words.catalogue import catalogue
from tests.house.files import SOURCE

MARKS = ("say", "speak")


@cache
def marked() -> dict[str, str]:
    """Each text, and where it is said."""
    found = dict.fromkeys(NOUNS, "words: a noun")
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        for line, text in calls(path.read_text(encoding="utf-8")):
            if text is not None:
                found.setdefault(text, f"{place}:{line}")
    for path in sorted(SOURCE.rglob("templates/*.html")):
        place = path.relative_to(SOURCE).as_posix()
        for line, text in drawn(path.read_text(encoding="utf-8")):
            if text is not None:
                found.setdefault(text, f"{place}:{line}")
    for text in helps(build()):
        found.setdefault(text, "--help")
    found.pop("", None)
    return found


def calls(source: str) -> Iterator[tuple[int, str | None]]:
    """The first argument of every `say` and `speak`; None where it is no plain text."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id in MARKS and node.args:
            first = node.args[0]
            text = first.value if isinstance(first, ast.Constant) else None
            yield node.lineno, text if isinstance(text, str) else None


def drawn(template: str) -> Iterator[tuple[int, str | None]]:
    """The same of a template of a page."""
    for call in Environment(autoescape=True).parse(template).find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "say":
            first = call.args[0] if call.args else None
            text = first.value if isinstance(first, nodes.Const) else None
            yield call.lineno, text if isinstance(text, str) else None


def helps(command: Any) -> Iterator[str]:
    for each in (command, *command.params):
        if getattr(each, "help", None) and not getattr(each, "hidden", False):
            yield each.help
    for below in getattr(command, "commands", {}).values():
        yield from helps(below)


if __name__ == "__main__":
    known = catalogue(Language.PT_BR)
    for text, place in marked().items():
        if text not in known:
            print(f"#: {place}")
            print(f"msgid {json.dumps(text, ensure_ascii=False)}")
            print('msgstr ""\n')
