"""`retoma quotes …`: lotes from a table, how far they are, what is stuck; adoption."""

import io
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, TypeVar

from retoma import settings
from retoma.apps.quotes import APP
from retoma.apps.quotes.adopt import Adoption
from retoma.apps.quotes.adopt import adopt as take_over
from retoma.apps.quotes.service import lotes, recovery
from retoma.apps.quotes.service import quotes as verbs
from retoma.apps.quotes.service.recovery import Recovered
from retoma.apps.quotes.service.tables import BadRows, Table
from retoma.apps.quotes.service.writing import Created
from retoma.console.applications import ask_in, print_page, shown_cell
from retoma.console.batch_progress import watch
from retoma.console.exits import Exit, Stop
from retoma.console.kit import ACTOR, clean, console, must_exist, print_json, read_secret, table
from retoma.engine.rules.errors import BadInput
from retoma.services.money import budget_shown
from retoma.toolkit.tools import Tools
from retoma.web.files import written_list
from retoma.web.money import costs_shown
from retoma.web.room import Room
from retoma.words import say, speak, tell

T = TypeVar("T")

BIGGEST = 20 << 20  # bytes of a table
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

    async def add(tools: Tools) -> tuple[Created, Table]:
        return await lotes.import_table(
            tools.retoma,
            io.BytesIO(content),
            memory=Room(),
            actor=ACTOR,
            name=called,
            budget=budget,
            only_good=only_good,
        )

    try:
        created, table = quotes(database, add)
    except BadRows as error:
        _print_bad_rows(error.table, sys.stderr)
        raise
    lote, n = created.id, len(table.quotes)
    if not as_json:
        _print_bad_rows(table, sys.stdout)
        print(_added(lote, n))
    elif not wait:
        print_json({"lote": lote, "quotes": n, "left_out": table.n_bad})
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
        pages = lotes.export_lote(tools.retoma, lote)
        with await written_list(as_, lotes.HEADINGS, pages, timezone) as file:
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
        stats = quotes(database, lambda tools: recovery.get_stats(tools.retoma))
        print_page(asdict(stats), as_json)
        return
    found = quotes(database, lambda tools: lotes.get_lote_status(tools.retoma, lote))
    cost, budget = costs_shown(found.cost), found.orcamento and budget_shown(found.orcamento)
    document = asdict(found) | {
        "cost": cost.model_dump(),
        "orcamento": budget and asdict(budget),
    }
    del document["resumable"]
    if not as_json:
        paid = [f"{cost.spent.usd} USD", f"{cost.spent.brl} BRL"]
        document["cost"] = " + ".join(each for each in paid if float(each.split()[0]))
        document["orcamento"] = f"{budget.budget}, {budget.share} %" if budget else ""
    print_page(document, as_json)


def show(database: str | None, as_json: bool, quote: int) -> None:
    row = quotes(database, lambda tools: verbs.get_quote_row(tools.retoma, quote))
    print_page(asdict(row), as_json)


# — what is stuck —


def stuck(database: str | None, as_json: bool) -> None:
    stuck = quotes(database, lambda tools: recovery.list_stuck(tools.retoma))
    found = [asdict(each) for each in stuck]
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
    async def go(tools: Tools) -> Recovered:
        if quote is None:
            return await recovery.recover_stuck(tools.retoma, actor=ACTOR)
        await recovery.recover_quote(tools.retoma, quote, actor=ACTOR)
        stuck = await recovery.count_stuck(tools.retoma)
        return Recovered(recovered=1, stuck_count=stuck)

    done = quotes(database, go)
    if as_json:
        print_json(asdict(done))
    else:
        print(
            speak("{n} taken up again, {stuck} stuck", n=done.recovered, stuck=done.stuck_count)
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
