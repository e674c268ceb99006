"""`retoma upgrade --check`: what the code that is installed would not understand."""

import asyncio
from typing import Final

from retoma import db, settings, upgrade
from retoma.bootstrap import rooms_of
from retoma.cli.runner import app_of
from retoma.console.exits import Exit, Stop
from retoma.console.kit import clean, console, must_exist, print_json, reachable, shown, table
from retoma.engine.handlers.kinds import Kinds
from retoma.library import Retoma
from retoma.settings import Settings
from retoma.upgrade import Finding, Report, What
from retoma.web.notices import notice_kinds
from retoma.words import say, speak, tell

WHATS: Final = {
    What.KIND: say("kind"),
    What.VERSION: say("version"),
    What.PAYLOAD: say("payload"),
    What.STEP: say("step"),
}


def check(app: str | None, database: str | None, as_json: bool, *, really: bool) -> None:
    if not really:
        raise Stop(
            Exit.USAGE,
            say(
                "say --check to see what the installed code would not understand; `retoma db"
                " upgrade` brings the schema up"
            ),
        )
    chosen = settings.read(database_url=database)
    made = app_of(app, chosen)
    url = chosen.database_url if database is not None or app is None else made.url
    must_exist(url)
    report = asyncio.run(_report(made, chosen, url))
    if as_json:
        print_json({"database": shown(url), **_document(report)})
    else:
        _show(report)
    if report.findings:
        raise SystemExit(Exit.FAILED)


async def _report(app: Retoma, chosen: Settings, url: str) -> Report:
    """On a connection of its own: a Retoma would bring the schema up first."""
    kinds = Kinds()
    for kind in (*app.kinds, *notice_kinds(app, chosen)):
        kinds.add(kind)
    await reachable(db.open(url))
    opened = db.open(url)
    try:
        return await upgrade.check(opened, kinds, rooms_of(chosen))
    finally:
        opened.close()
        await app.close()


def _document(report: Report) -> dict[str, object]:
    return {
        "looked_at": report.looked_at,
        "findings": [
            {
                "what": str(each.what),
                "kind": each.kind,
                "version": each.version,
                "step": each.step,
                "why": str(each.why),
                "jobs": each.jobs,
                "examples": list(each.examples),
            }
            for each in report.findings
        ],
        "pending": {each.room: list(each.numbers) for each in report.pending},
    }


def _show(report: Report) -> None:
    for more in report.pending:
        numbers = ", ".join(map(str, more.numbers))
        print(speak("not yet applied of {room}: {numbers}", room=more.room, numbers=numbers))
    if not report.findings:
        print(
            speak("the installed code understands all {n} jobs in flight", n=report.looked_at)
        )
        return
    rows = table(
        *(speak("kind"), speak("not understood"), speak("why"), speak("jobs"), speak("such as"))
    )
    for each in report.findings:
        rows.add_row(*_row(each))
    console().print(rows)


def _row(each: Finding) -> tuple[str, ...]:
    what = tell(WHATS[each.what])
    if each.step is not None:
        what = f"{what} {clean(each.step)}"
    return (
        clean(f"{each.kind}@{each.version}"),
        what,
        clean(tell(each.why)),
        str(each.jobs),
        ", ".join(map(str, each.examples)),
    )
