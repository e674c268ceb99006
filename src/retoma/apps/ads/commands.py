"""`retoma ads …`: missions, workers, proxies and writers from the command line; reports; adoption."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from retoma.apps.ads import APP, store
from retoma.apps.ads.adopt import Adoption
from retoma.apps.ads.adopt import adopt as take_over
from retoma.apps.ads.api import generate as generator
from retoma.apps.ads.api.how import secrets_by
from retoma.apps.ads.api.missions import NewMission, mission_told
from retoma.apps.ads.api.onboarding import Taken, Verdict, take, take_lines
from retoma.apps.ads.api.things import CHANGED, NULLABLE, change
from retoma.apps.ads.intake import LONGEST, Intake, Line
from retoma.apps.ads.store import reports
from retoma.apps.ads.store.rows import Sort
from retoma.console.applications import ask_in
from retoma.console.exits import Exit, Stop
from retoma.console.kit import (
    ACTOR,
    at,
    clean,
    console,
    must_exist,
    print_json,
    read_secret,
    table,
)
from retoma.db import Transaction, adhoc, quoted
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.transaction import Transaction as Lent
from retoma.toolkit.tools import Tools
from retoma.web.flaws import flaws_of
from retoma.words import say, speak, tell

T = TypeVar("T")
B = TypeVar("B", bound=BaseModel)

SHOWN = ("id", "status", "checkpoint", "date_start", "date_end", "media_type", "languages")
NAMES: dict[Sort, tuple[str, ...]] = {
    Sort.WORKERS: ("id", "name", "url", "storage_domain", "status", "active", "last_test_ok"),
    Sort.PROXIES: ("id", "name", "host", "port", "username", "active", "fail_count"),
    Sort.WRITERS: ("id", "name", "url", "active", "last_test_ok"),
}


def ads(database: str | None, verb: Callable[[Tools], Awaitable[T]]) -> T:
    """One verb on a database that has the ads application in it."""
    return ask_in(APP, database, verb)


def read(database: str | None, fn: Callable[[Transaction], T]) -> T:
    async def asked(tools: Tools) -> T:
        return await (await tools.retoma.database()).read(fn)

    return ads(database, asked)


def write(database: str | None, fn: Callable[[Lent], T]) -> T:
    return ads(database, lambda tools: tools.retoma.write(fn))


# — missions —


def missions_list(
    database: str | None, as_json: bool, search: store.MissionSearch, before: str | None, n: int
) -> None:
    rows = read(database, lambda tx: store.list_missions(tx, search, before=before, n=n))
    show([mission_told(row) for row in rows], as_json, SHOWN, say("no missions"))


def missions_add(
    database: str | None, as_json: bool, told: dict[str, Any], *, queue: bool
) -> None:
    body = checked(NewMission, told)
    wanted = store.NewMission(
        body.date_start, body.date_end, body.media_type, tuple(body.languages)
    )

    def add(tx: Lent) -> list[str]:
        ids = store.add_missions(tx, [wanted], actor=ACTOR)
        if queue:
            store.queue_missions(tx, ids, actor=ACTOR)
        return ids

    made(write(database, add), as_json)


def missions_queue(database: str | None, as_json: bool, missions: Sequence[str]) -> None:
    write(database, lambda tx: store.queue_missions(tx, missions, actor=ACTOR))
    made(missions, as_json)


def missions_cancel(database: str | None, as_json: bool, mission: str) -> None:
    status = write(database, lambda tx: store.cancel_mission(tx, mission, actor=ACTOR))
    if as_json:
        print_json({"id": mission, "status": status})
    else:
        print(
            speak(
                "{mission}: asked to be canceled, now {status}", mission=mission, status=status
            )
        )


def missions_delete(database: str | None, as_json: bool, missions: Sequence[str]) -> None:
    write(database, lambda tx: store.delete_missions(tx, missions, actor=ACTOR))
    made(missions, as_json)


def missions_resend(database: str | None, as_json: bool, missions: Sequence[str]) -> None:
    def resend(tx: Lent) -> None:
        for mission in missions:
            store.resend_failed(tx, mission, actor=ACTOR)

    write(database, resend)
    made(missions, as_json)


def missions_timeline(database: str | None, as_json: bool, mission: str) -> None:
    told = read(database, lambda tx: reports.timeline(tx, mission))
    show(told, as_json, ("timestamp", "event", "details"), say("nothing has happened yet"))


# — workers, proxies, writers —


def things_list(database: str | None, as_json: bool, sort: str) -> None:
    names = NAMES[Sort(sort)]
    asked = adhoc(f"SELECT {', '.join(names)} FROM {quoted(sort)} ORDER BY id")  # noqa: S608
    rows = read(database, lambda tx: tx.all(asked))
    show([dict(zip(names, row, strict=True)) for row in rows], as_json, names, say("none yet"))


def things_add(database: str | None, as_json: bool, sort: str, told: dict[str, Any]) -> None:
    """As one line that was read already."""
    line = Line(
        1, {name: str(value) for name, value in told.items() if value not in (None, "")}
    )
    taken = ads(
        database,
        lambda tools: take_lines(tools, Intake(sort), [line], actor=ACTOR, dry_run=False),
    )
    for each in taken.lines:
        if each.verdict is not Verdict.NEW:
            why = "; ".join(tell(why) for why in each.why)
            raise Stop(
                Exit.USAGE if each.verdict is Verdict.WRONG else Exit.FAILED,
                say("{why}; nothing was added", why=why),
            )
    made(taken.ids, as_json)


def things_switch(
    database: str | None, as_json: bool, sort: str, ids: Sequence[str], *, on: bool
) -> None:
    verb = store.activate if on else store.deactivate
    write(database, lambda tx: verb(tx, Sort(sort), ids, actor=ACTOR))
    made(ids, as_json)


def things_change(
    database: str | None, as_json: bool, sort: str, id_: str, told: dict[str, Any]
) -> None:
    """What is None stays as it is; what is an empty text is taken away."""
    named = {name: value for name, value in told.items() if value is not None}
    given_ = {
        name: None if name in NULLABLE and not value else value for name, value in named.items()
    }
    if not given_:
        raise BadInput(say("say what is to be changed; nothing was changed"))
    body = checked(CHANGED[Sort(sort)], given_, empty=True)
    ads(database, lambda tools: change(tools, Sort(sort), id_, body, ACTOR))
    made([id_], as_json)


def things_delete(database: str | None, as_json: bool, sort: str, ids: Sequence[str]) -> None:
    async def delete(tools: Tools) -> None:
        secrets = await secrets_by(tools, ACTOR)
        await tools.retoma.write(lambda tx: store.delete(tx, Sort(sort), ids, secrets))

    ads(database, delete)
    made(ids, as_json)


def worker_reset(database: str | None, as_json: bool, worker: str) -> None:
    write(database, lambda tx: store.reset_worker(tx, worker, actor=ACTOR))
    made([worker], as_json)


def worker_relocate(database: str | None, as_json: bool, worker: str) -> None:
    write(database, lambda tx: store.relocate(tx, worker, actor=ACTOR))
    made([worker], as_json)


def things_test(database: str | None, as_json: bool, sort: str, ids: Sequence[str]) -> None:
    n = write(database, lambda tx: store.ask_tests(tx, Sort(sort), ids or None, actor=ACTOR))
    if as_json:
        print_json({"tests": n})
    else:
        print(speak("tests requested: {n}; a runner does them", n=n))


# — many at once —


def import_(
    database: str | None, as_json: bool, what: Intake, file: str, *, apply: bool, test: bool
) -> None:
    taken = _taken(database, what, _text(file), dry_run=not apply, test=test)
    counts = {str(each): taken.count(each) for each in Verdict}
    lines = [
        {
            "line": each.number,
            "verdict": str(each.verdict),
            "what": each.what,
            "why": "; ".join(tell(why) for why in each.why),
        }
        for each in taken.lines
    ]
    if as_json:
        print_json({"dry_run": not apply, **counts, "ids": taken.ids, "lines": lines})
    else:
        show(lines, False, ("line", "verdict", "what", "why"), say("none yet"))
        told = speak(
            "{new} new, {duplicate} duplicates, {wrong} wrong",
            new=counts["new"],
            duplicate=counts["duplicate"],
            wrong=counts["wrong"],
        )
        print(told if apply else f"{speak('Dry run: nothing was added.')} {told}")
    if counts["wrong"] and apply:
        raise Stop(
            Exit.FAILED,
            say("1 line is wrong; nothing was added")
            if counts["wrong"] == 1
            else say("{n} lines are wrong; nothing was added", n=counts["wrong"]),
        )


def _taken(
    database: str | None, what: Intake, text: str, *, dry_run: bool, test: bool
) -> Taken:
    return ads(
        database,
        lambda tools: take(tools, what, text, actor=ACTOR, dry_run=dry_run, test=test),
    )


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read(LONGEST + 1)
    try:
        with Path(file).open(encoding="utf-8") as opened:
            return opened.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(
            Exit.USAGE, say("{file} cannot be read: {error}", file=file, error=error)
        ) from None


def generate(database: str | None, as_json: bool, told: dict[str, Any]) -> None:
    body = checked(generator.Generate, told)
    result = ads(database, lambda tools: generator.generated(tools.retoma, body, ACTOR))
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    counts = {"wanted": result.wanted, "new": result.new, "known": result.duplicate}
    if result.dry_run:
        print(speak("{wanted} missions: {new} new, {known} there already", **counts))
    else:
        print(speak("missions made: {new}; there already: {known}", **counts))


def recur(database: str | None, as_json: bool, told: dict[str, Any]) -> None:
    body = checked(generator.Recur, told)
    result = ads(database, lambda tools: generator.recurring(tools.retoma, body, ACTOR))
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        print(
            speak("{name}: next run at {at}", name=result.name, at=f"{at(result.next_at)} UTC")
        )


def recurrences(database: str | None, as_json: bool) -> None:
    found = ads(database, lambda tools: generator.recurrences(tools.retoma))
    names = ("name", "cron", "timezone", "languages", "media_types", "back", "next_at")
    shown = [each.model_dump(mode="json") for each in found]
    show(shown, as_json, names, say("No schedules."))


def forget(database: str | None, as_json: bool, name: str) -> None:
    ads(database, lambda tools: generator.forget(tools.retoma, name, ACTOR))
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        print(speak("schedule {name} was removed", name=clean(name)))


# — the orchestrator —


def start(database: str | None, as_json: bool) -> None:
    write(database, lambda tx: store.start(tx, actor=ACTOR))
    status(database, as_json)


def stop(database: str | None, as_json: bool, *, now: bool = False) -> None:
    verb = store.stop_now if now else store.stop
    write(database, lambda tx: verb(tx, actor=ACTOR))
    status(database, as_json)


def status(database: str | None, as_json: bool) -> None:
    row = read(database, lambda tx: tx.one(store.COUNT_MISSIONS)) or ()
    names = ("wish", "changed_by", "queued_count", "running_count", "session_count")
    told = dict(zip(names, row, strict=False))
    if as_json:
        print_json(told)
        return
    print(
        speak(
            "the orchestrator is {wish}; in the queue: {queued}, under way: {running}, sessions:"
            " {sessions}",
            wish=speak("started") if told["wish"] == "started" else speak("stopped"),
            queued=told["queued_count"],
            running=told["running_count"],
            sessions=told["session_count"],
        )
    )


# — reports —


def report_failures(database: str | None, as_json: bool, hours: int, code: str | None) -> None:
    told = read(database, lambda tx: reports.failures(tx, hours * reports.HOUR, code))
    names = ("id", "failed_at", "error_code", "error_message", "retry_count", "status")
    show(told, as_json, names, say("No mission failed in this period."))


def report_workers(database: str | None, as_json: bool, days: int) -> None:
    told = read(database, lambda tx: reports.performance(tx, days * reports.DAY))
    names = ("worker_name", "completed_count", "failed_count", "avg_duration_ms", "ads_count")
    show(told, as_json, names, say("No worker completed a mission in this period."))


def report_proxies(database: str | None, as_json: bool, days: int) -> None:
    told = read(database, lambda tx: reports.proxies(tx, days * reports.DAY))
    names = ("name", "active", "fail_count", "session_failures", "rotations", "last_failed_at")
    show(told, as_json, names, say("none yet"))


# — adoption —


def adopt(
    database: str | None,
    as_json: bool,
    dsn: str,
    *,
    apply: bool,
    schema: str,
    source: str | None,
) -> None:
    url = read_secret(dsn) or ""
    must_exist(url)

    def go(tools: Tools) -> Awaitable[Adoption]:
        how: dict[str, Any] = {"apply": apply, "schema": schema, "source": source}
        return take_over(tools, url, actor=ACTOR, **how)

    told = ads(database, go)
    if as_json:
        print_json(asdict(told))
        return
    page = table(
        *(speak("table"), speak("found"), speak("new"), speak("taken over before")),
        *(speak("here already"), speak("left")),
    )
    for name, counts in told.counts.items():
        page.add_row(name, *(str(getattr(counts, each.name)) for each in fields(counts)))
    console().print(page)
    for note in told.notes:
        print(clean(note))
    if told.under_way:
        print(
            speak(
                "missions that were under way there: {n}; here they have failed, and a person decides",
                n=told.under_way,
            )
        )
    print(
        speak("taken over")
        if apply
        else speak("a dry run: nothing was changed; --apply does it")
    )


# — answering —


def checked(shape: type[B], told: dict[str, Any], *, empty: bool = False) -> B:
    """`empty`: what is nothing is said too."""
    given_ = {
        name: value for name, value in told.items() if empty or value not in (None, "", [], ())
    }
    try:
        return shape.model_validate(given_)
    except ValidationError as error:
        flaws = flaws_of(RequestValidationError(error.errors()))
        why = "; ".join(f"{each.path} {tell(each.why)}" for each in flaws)
        raise BadInput(say("{why}", why=why)) from None


def made(ids: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json({"ids": list(ids)})
    else:
        print("\n".join(ids))


def show(rows: Sequence[Any], as_json: bool, names: Sequence[str], nothing: str) -> None:
    plain = [
        asdict(row) if is_dataclass(row) and not isinstance(row, type) else row for row in rows
    ]
    if as_json:
        print_json(plain)
        return
    if not plain:
        console().print(tell(nothing))
        return
    page = table(*names)
    for row in plain:
        page.add_row(*(_cell(row[name]) for name in names))
    console().print(page)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case list() | tuple():
            return clean(", ".join(str(each) for each in value))
        case bool():
            return speak("yes") if value else speak("no")
        case _ if hasattr(value, "tzinfo"):
            return at(value)
        case _:
            return clean(value)
