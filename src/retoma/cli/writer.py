"""`retoma writer-service` and `retoma writer profiles …`: the writer, and what it may be asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from retoma import logs, settings
from retoma.bootstrap import build_retoma, build_vault
from retoma.cli.runner import run_on_the_quickest_loop
from retoma.cli.services import key_of, serve
from retoma.console.exits import Exit, Stop
from retoma.console.kit import ACTOR, clean, console, print_json, table
from retoma.outbound import Outbound
from retoma.programs.writer import Desk, Profile, Wanted
from retoma.programs.writer.api import build_writer
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.vault import SecretRef
from retoma.vault.ref import parse_secret
from retoma.words import say, speak

T = TypeVar("T")

DATABASE = "sqlite:///writer.db"  # its own, in this folder


def run(database: str | None, host: str, port: int, *, with_parent: bool) -> None:
    chosen = _settings(database)
    logs.configure(chosen.log_level)
    build = partial(build_writer, _desk(chosen), api_key=key_of(chosen))
    run_on_the_quickest_loop(serve(build, host=host, port=port, with_parent=with_parent))


def add(
    database: str | None,
    as_json: bool,
    wanted: Wanted,
    target: str,
    headers: Sequence[str],
) -> None:
    secrets = dict(_header(each) for each in headers)
    made = _ask(
        database, lambda desk: desk.add(wanted, parse_secret(target), secrets, actor=ACTOR)
    )
    if as_json:
        print_json(_document(made))
    else:
        print(
            speak(
                "profile {name}: {n} columns of {table}, by {key}",
                name=made.name,
                n=len(made.columns),
                table=clean(made.table),
                key=clean(made.conflict_key),
            )
        )


def list_(database: str | None, as_json: bool) -> None:
    found = _ask(database, lambda desk: desk.profiles())
    if as_json:
        print_json([_document(each) for each in found])
        return
    if not found:
        console().print(speak("no profiles"))
        return
    page = table(
        *(speak("name"), speak("table"), speak("key"), speak("path"), speak("columns")),
        *(speak("sources"), speak("headers")),
    )
    for each in found:
        page.add_row(
            *(each.name, clean(f"{each.schema}.{each.table}"), clean(each.conflict_key)),
            *(clean(each.json_path), str(len(each.columns)), clean(", ".join(each.origins))),
            clean(", ".join(each.headers)),
        )
    console().print(page)


def check(database: str | None, as_json: bool, name: str) -> None:
    found = _ask(database, lambda desk: desk.check(name))
    if as_json:
        print_json({"name": name, "differences": found})
    if found:
        raise Stop(
            Exit.FAILED,
            say(
                "the target of {name} is not what it was: {found}; add the profile again",
                name=name,
                found="; ".join(found),
            ),
        )
    if not as_json:
        print(speak("the target of {name} is as its profile says", name=name))


def remove(database: str | None, as_json: bool, name: str) -> None:
    _ask(database, lambda desk: desk.remove(name, actor=ACTOR))
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        print(speak("there is no profile {name} any more", name=clean(name)))


def _settings(database: str | None) -> Settings:
    return settings.read(database_url=database or DATABASE)


def _desk(chosen: Settings) -> Desk:
    retoma = build_retoma(chosen)
    return Desk(retoma, lambda own: build_vault(chosen, own, retoma.ids), Outbound())


def _ask(database: str | None, verb: Callable[[Desk], Awaitable[T]]) -> T:
    async def asked() -> T:
        desk = _desk(_settings(database))
        async with desk.retoma:
            try:
                await desk.ready()
                return await verb(desk)
            finally:
                await desk.close()

    return asyncio.run(asked())


def _header(text: str) -> tuple[str, Secret | SecretRef]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Stop(
            Exit.USAGE, say("a header is NAME=env:VARIABLE, NAME=file:/path or NAME=value")
        )
    return name.lower(), parse_secret(value)


def _document(profile: Profile) -> Mapping[str, Any]:
    return {
        "name": profile.name,
        "table": profile.table,
        "schema": profile.schema,
        "conflict_key": profile.conflict_key,
        "json_path": profile.json_path,
        "sources": list(profile.origins),
        "headers": list(profile.headers),
        "rest": profile.rest,
        "columns": [
            {
                "name": each.name,
                "type": each.type,
                "nullable": each.nullable,
                "has_default": each.has_default,
            }
            for each in profile.columns
        ],
    }
