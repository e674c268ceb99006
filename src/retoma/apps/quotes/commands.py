"""`retoma quotes …`: lotes from a table, how far they are, what is stuck; adoption."""

import io
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, TypeVar

from retoma import settings
from retoma.apps.quotes import APP, store
from retoma.apps.quotes.adopt import Adoption
from retoma.apps.quotes.adopt import adopt as take_over
from retoma.apps.quotes.api.lotes import (
    BIGGEST,
    HEADINGS,
    MOST_LINES,
    BadRows,
    Table,
    lote_of,
    read_table,
    results_of,
)
from retoma.apps.quotes.api.system import (
    count_stuck,
    recover_all,
    recover_one,
    stats_told,
    status_told,
    stuck_told,
)
from retoma.console.applications import ask_in, print_page, shown_cell
from retoma.console.batch_progress import watch
from retoma.console.exits import Exit, Stop
from retoma.console.kit import ACTOR, clean, console, must_exist, print_json, read_secret, table
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.tables import as_text_table
from retoma.toolkit.tools import Tools
from retoma.web.files import written_list
from retoma.words import say, speak, tell

T = TypeVar("T")

STUCK = ("id", "batch_request_id", "processing_checkpoint", "worker_id", "last_progress")
COUNTED = (
    *("found", "history", "open", "already", "left", "at_work", "renumbered"),
    *("analyses", "searches", "tested", "lotes"),
)


def quotes(database: str | None, verb: Callable[[Tools], Awaitable[T]]) -> T:
    """One verb on a database that has the quotes application in it."""
    return ask_in(APP, database, verb)


# — lotes —


def submit(
    database: str | None,
    as_json: bool,
    file: str,
    *,
    name: str | None,
    budget: str | None,
    only_good: bool,
    wait: bool,
) -> None:
    content = _content(file)
    called = name or (None if file == "-" else Path(file).stem)

    async def add(tools: Tools) -> tuple[store.Added, Table]:
        read = io.BytesIO(content)
        async with as_text_table(read, tools.retoma.isolate, most=MOST_LINES) as text:
            table = read_table(text)
        if table.n_bad and not (only_good and table.quotes):
            raise BadRows(table)
        return await tools.retoma.write(
            lambda tx: store.add_lote(tx, table.quotes, name=called, budget=budget, actor=ACTOR)
        ), table

    try:
        added, table = quotes(database, add)
    except BadRows as error:
        _print_bad_rows(error.table, sys.stderr)
        raise
    lote = added.lote or 0
    if not as_json:
        _print_bad_rows(table, sys.stdout)
        print(_added(lote, len(added.quotes)))
    elif not wait:
        print_json({"lote": lote, "quotes": len(added.quotes), "left_out": table.n_bad})
    if wait:
        watch(database, as_json, lote)


def _added(lote: int, n: int) -> str:
    if n == 1:
        return speak("lote {lote}: 1 quote", lote=lote)
    return speak("lote {lote}: {n} quotes", lote=lote, n=n)


def _print_bad_rows(table: Table, out: TextIO) -> None:
    for each in table.bad:
        why = tell(each.why)
        line = speak("line {n}: {column} {why}", n=each.line, column=each.column, why=why)
        print(clean(line), file=out)


def export(database: str | None, lote: int, *, as_: str, out: Path | None) -> None:
    """Write what came of a lote to a file; without one, to stdout."""
    timezone = settings.read(database_url=database).timezone

    async def make(tools: Tools) -> bytes:
        await lote_of(tools, lote)
        with await written_list(as_, HEADINGS, results_of(tools, lote), timezone) as file:
            return file.read()

    content = quotes(database, make)
    if out is None:
        sys.stdout.buffer.write(content)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Stop(Exit.USAGE, say("{file}: {why}", file=str(out), why=why)) from error


def _content(file: str) -> bytes:
    """No more of it than is taken: a mistaken file may be endless."""
    try:
        if file == "-":
            content = sys.stdin.buffer.read(BIGGEST + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(BIGGEST + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Stop(Exit.USAGE, say("{file}: {why}", file=file, why=why)) from error
    if len(content) > BIGGEST:
        raise BadInput(say("more than {most} bytes at a time", most=BIGGEST))
    return content


def status(database: str | None, as_json: bool, lote: int | None) -> None:
    if lote is None:
        print_page(quotes(database, stats_told).model_dump(mode="json"), as_json)
    else:
        told = quotes(database, lambda tools: status_told(tools, lote)).model_dump(mode="json")
        print_page(told if as_json else told | _sums(told), as_json)


def _sums(lote: Mapping[str, Any]) -> dict[str, str]:
    """What a person asks of its money: what was spent, and of how much."""
    spent, budget = lote["cost"]["spent"], lote["orcamento"]
    paid = [f"{spent[each]} {each.upper()}" for each in ("usd", "brl") if float(spent[each])]
    of = "" if budget is None else f"{budget['budget']}, {budget['share']} %"
    return {"cost": " + ".join(paid), "orcamento": of}


def show(database: str | None, as_json: bool, quote: int) -> None:
    async def look(tools: Tools) -> dict[str, Any]:
        opened = await tools.retoma.database()
        return await opened.read(lambda tx: store.quote_seen(tx, quote))

    print_page(quotes(database, look), as_json)


# — what is stuck —


def stuck(database: str | None, as_json: bool) -> None:
    found = [each.model_dump() for each in quotes(database, stuck_told)]
    if as_json:
        print_json(found)
    elif not found:
        print(speak("no quote is stuck"))
    else:
        page = table(*STUCK)
        for each in found:
            page.add_row(*(shown_cell(each[name]) for name in STUCK))
        console().print(page)


def recover(database: str | None, as_json: bool, quote: int | None) -> None:
    async def go(tools: Tools) -> dict[str, int]:
        if quote is not None:
            await recover_one(tools, quote, ACTOR)
            return {"recovered": 1, "stuck_count": await count_stuck(tools)}
        return (await recover_all(tools, ACTOR)).model_dump()

    told = quotes(database, go)
    if as_json:
        print_json(told)
    else:
        print(
            speak(
                "{n} taken up again, {stuck} stuck",
                n=told["recovered"],
                stuck=told["stuck_count"],
            )
        )


# — adoption —


def adopt(database: str | None, as_json: bool, dsn: str, *, apply: bool, **how: Any) -> None:
    url = read_secret(dsn) or ""
    must_exist(url)

    def go(tools: Tools) -> Awaitable[Adoption]:
        return take_over(tools.retoma, url, actor=ACTOR, apply=apply, **how)

    told = quotes(database, go)
    if as_json:
        print_json(asdict(told))
        return
    print_page({name: getattr(told, name) for name in COUNTED}, as_json)
    for note in told.notes:
        print(clean(tell(note)))
    if told.at_work:
        print(
            speak("{n} are at work there: stop that first, then run this again", n=told.at_work)
        )
    print(
        speak("taken over")
        if apply
        else speak("a dry run: nothing was changed; --apply does it")
    )
