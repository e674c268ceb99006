"""What the API can do, told from its own OpenAPI document: as a page, and as docs/reference/rest.md.

Plain HTML of our own: the usual pages load programs from somebody else's server, which an office
without a way out cannot reach and our own headers forbid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")

STYLE = """\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; } h3 { margin-bottom: 0; font: 600 1rem/1.5 ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; }
code { font-family: ui-monospace, monospace; } .role { opacity: .7; }
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked."""

    tag: str
    method: str
    path: str
    role: str
    says: str
    parameters: list[tuple[str, str, str]]  # name, where, what
    body: str | None
    answers: list[str]

    @property
    def address(self) -> str:
        return f"{self.method.upper()} {self.path}"


def operations(openapi: Mapping[str, Any]) -> Iterator[Operation]:
    """In the order in which they were declared."""
    for path, item in openapi["paths"].items():
        for method in METHODS:
            if method in item:
                yield _operation(path, method, item[method])


def _operation(path: str, method: str, raw: Mapping[str, Any]) -> Operation:
    return Operation(
        tag=raw["tags"][0],
        method=method,
        path=path,
        role=raw["x-role"],
        says=" ".join(raw.get("description", raw["summary"]).split()),
        parameters=[
            (each["name"], each["in"], each.get("description", ""))
            for each in raw.get("parameters", [])
        ],
        body=_body(raw),
        answers=[status for status in raw["responses"] if int(status) < 400],
    )


def _body(raw: Mapping[str, Any]) -> str | None:
    content = raw.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    schema = content["schema"]
    named = (
        schema
        if "$ref" in schema
        else next((each for each in schema.get("anyOf", []) if "$ref" in each), {})
    )
    return str(named.get("$ref", "")).rpartition("/")[2] or None


# — as Markdown —


def markdown(openapi: Mapping[str, Any], head: str) -> str:
    """The table of every operation, room by room, under a head that was written by hand."""
    lines = [head.rstrip(), ""]
    rooms: dict[str, list[Operation]] = {}
    for each in operations(openapi):
        rooms.setdefault(each.tag, []).append(each)
    for tag, found in rooms.items():
        lines += [f"## {tag[0].upper()}{tag[1:]}", ""]
        lines += ["| request | role | does | answers |", "|---|---|---|---|"]
        lines += [
            f"| `{each.address}` | {each.role} | {_cell(each)} | {', '.join(each.answers)} |"
            for each in found
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(each: Operation) -> str:
    names = [f"`{name}`" for name, where, _ in each.parameters if where == "query"]
    if each.body is not None:
        names.append(f"body `{each.body}`")
    if any(name == "Idempotency-Key" for name, _, _ in each.parameters):
        names.append("`Idempotency-Key`")
    takes = f" ({', '.join(names)})" if names else ""
    return f"{each.says}{takes}".replace("|", "\\|")


# — as a page —


def page(openapi: Mapping[str, Any]) -> str:
    info = openapi["info"]
    rooms: dict[str, list[Operation]] = {}
    for each in operations(openapi):
        rooms.setdefault(each.tag, []).append(each)
    inside = "".join(
        f"<h2>{escape(tag)}</h2>{''.join(_section(each) for each in found)}"
        for tag, found in rooms.items()
    )
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(info['title'])}</title><link rel='stylesheet' href='/docs.css'>"
        f"<main><h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"
        "<p>For programs: <a href='/openapi.json'>openapi.json</a></p>"
        f"{inside}</main>"
    )


def _section(each: Operation) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(where)}</td>"
        f"<td>{escape(what)}</td></tr>"
        for name, where, what in each.parameters
    )
    body = f"<p>body: <code>{escape(each.body)}</code></p>" if each.body else ""
    table = f"<table>{rows}</table>" if rows else ""
    return (
        f"<section><h3>{escape(each.address)}</h3>"
        f"<p>{escape(each.says)} <span class='role'>({escape(each.role)};"
        f" {escape(', '.join(each.answers))})</span></p>{table}{body}</section>"
    )
