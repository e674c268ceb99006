"""`retoma ads …`: missions, workers, proxies and writers from the command line; reports; adoption."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from retoma.apps.ads import APP
from retoma.apps.ads.service import (
    missions,
    orchestrator,
    reports,
    resources,
)
from retoma.apps.ads.service import recurrences as schedules
from retoma.apps.ads.service.adoption import adopt_database
from retoma.apps.ads.service.imports import Verdict, explain_wrong, import_lines
from retoma.apps.ads.service.inputs import (
    CHANGED,
    NULLABLE,
    Generate,
    NewMission,
    Recur,
    list_flaws,
)
from retoma.apps.ads.service.intake import LONGEST, Intake, Line
from retoma.apps.ads.service.intake import read as read_lines
from retoma.apps.ads.store import RECORDS, MissionSearch, OrchestratorState, Sort
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
from retoma.engine.rules.errors import BadInput
from retoma.library import Retoma
from retoma.words import say, speak, tell

T = TypeVar("T")
B = TypeVar("B", bound=BaseModel)

MOST = 1_000_000  # workers, proxies or writers in one list
SHOWN = ("id", "status", "checkpoint", "date_start", "date_end", "media_type", "languages")
RECURRENCE = TypeAdapter(schedules.Recurrence)
NAMES: dict[Sort, tuple[str, ...]] = {
    Sort.WORKERS: ("id", "name", "url", "storage_domain", "status", "active", "last_test_ok"),
    Sort.PROXIES: ("id", "name", "host", "port", "username", "active", "fail_count"),
    Sort.WRITERS: ("id", "name", "url", "active", "last_test_ok"),
}


def ads(database: str | None, verb: Callable[[Retoma], Awaitable[T]]) -> T:
    """Run one verb on a database that has the ads application in it."""
    return ask_in(APP, database, lambda tools: verb(tools.retoma))


# — missions —


def missions_list(
    database: str | None, as_json: bool, search: MissionSearch, before: str | None, n: int
) -> None:
    found = ads(
        database, lambda app: missions.list_missions(app, search, before=before, limit=n)
    )
    rows = [{**asdict(each), "retry_count": each.retry_count} for each in found]
    show(rows, as_json, SHOWN, say("no missions"))


def missions_add(
    database: str | None, as_json: bool, given: dict[str, Any], *, queue: bool
) -> None:
    mission = checked(NewMission, given).mission
    made(
        ads(
            database,
            lambda app: missions.add_missions(app, [mission], actor=ACTOR, queue=queue),
        ),
        as_json,
    )


def missions_queue(database: str | None, as_json: bool, ids: Sequence[str]) -> None:
    ads(database, lambda app: missions.queue_missions(app, ids, actor=ACTOR))
    made(ids, as_json)


def missions_cancel(database: str | None, as_json: bool, mission: str) -> None:
    status = ads(database, lambda app: missions.cancel_mission(app, mission, actor=ACTOR))
    if as_json:
        print_json({"id": mission, "status": status})
    else:
        print(
            speak(
                "{mission}: asked to be canceled, now {status}", mission=mission, status=status
            )
        )


def missions_delete(database: str | None, as_json: bool, ids: Sequence[str]) -> None:
    ads(database, lambda app: missions.delete_missions(app, ids, actor=ACTOR))
    made(ids, as_json)


def missions_resend(database: str | None, as_json: bool, ids: Sequence[str]) -> None:
    ads(database, lambda app: missions.resend_missions(app, ids, actor=ACTOR))
    made(ids, as_json)


def missions_timeline(database: str | None, as_json: bool, mission: str) -> None:
    happened = ads(database, lambda app: missions.get_timeline(app, mission))
    rows = [asdict(each) for each in happened]
    show(rows, as_json, ("timestamp", "event", "details"), say("nothing has happened yet"))


# — workers, proxies, writers —


def things_list(database: str | None, as_json: bool, sort: str) -> None:
    record, names = RECORDS[Sort(sort)], NAMES[Sort(sort)]
    found = ads(database, lambda app: resources.list_records(app, record, limit=MOST))
    rows = [{name: getattr(each, name) for name in names} for each in found]
    show(rows, as_json, names, say("none yet"))


def things_add(database: str | None, as_json: bool, sort: str, given: dict[str, Any]) -> None:
    """Import the values as one line that was read already."""
    line = Line(
        1, {name: str(value) for name, value in given.items() if value not in (None, "")}
    )
    done = ads(
        database,
        lambda app: import_lines(app, Intake(sort), [line], actor=ACTOR, dry_run=False),
    )
    for each in done.lines:
        if each.verdict is not Verdict.NEW:
            why = "; ".join(tell(why) for why in each.why)
            raise Stop(
                Exit.USAGE if each.verdict is Verdict.WRONG else Exit.FAILED,
                say("{why}; nothing was added", why=why),
            )
    made(done.ids, as_json)


def things_switch(
    database: str | None, as_json: bool, sort: str, ids: Sequence[str], *, on: bool
) -> None:
    verb = resources.activate_resources if on else resources.deactivate_resources
    ads(database, lambda app: verb(app, Sort(sort), ids, actor=ACTOR))
    made(ids, as_json)


def things_change(
    database: str | None, as_json: bool, sort: str, id_: str, given: dict[str, Any]
) -> None:
    """Change what is given: None stays as it is, an empty text is taken away."""
    changes = {
        name: None if name in NULLABLE and not value else value
        for name, value in given.items()
        if value is not None
    }
    if not changes:
        raise BadInput(say("say what is to be changed; nothing was changed"))
    entered = checked(CHANGED[Sort(sort)], changes, empty=True)
    ads(
        database,
        lambda app: resources.change_resource(app, Sort(sort), id_, entered, actor=ACTOR),
    )
    made([id_], as_json)


def things_delete(database: str | None, as_json: bool, sort: str, ids: Sequence[str]) -> None:
    ads(database, lambda app: resources.delete_resources(app, Sort(sort), ids, actor=ACTOR))
    made(ids, as_json)


def worker_reset(database: str | None, as_json: bool, worker: str) -> None:
    ads(database, lambda app: resources.reset_worker(app, worker, actor=ACTOR))
    made([worker], as_json)


def worker_relocate(database: str | None, as_json: bool, worker: str) -> None:
    ads(database, lambda app: resources.relocate_worker(app, worker, actor=ACTOR))
    made([worker], as_json)


def things_test(database: str | None, as_json: bool, sort: str, ids: Sequence[str]) -> None:
    n = ads(
        database,
        lambda app: resources.request_tests(app, Sort(sort), ids or None, actor=ACTOR),
    )
    if as_json:
        print_json({"tests": n})
    else:
        print(speak("tests requested: {n}; a runner does them", n=n))


# — many at once —


def import_(
    database: str | None, as_json: bool, what: Intake, file: str, *, apply: bool, test: bool
) -> None:
    lines_in = read_lines(what, _text(file))
    done = ads(
        database,
        lambda app: import_lines(
            app, what, lines_in, actor=ACTOR, dry_run=not apply, test=test
        ),
    )
    counts = {str(each): done.count(each) for each in Verdict}
    lines = [
        {
            "line": each.number,
            "verdict": str(each.verdict),
            "what": each.what,
            "why": "; ".join(tell(why) for why in each.why),
        }
        for each in done.lines
    ]
    if as_json:
        print_json({"dry_run": not apply, **counts, "ids": done.ids, "lines": lines})
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
        raise Stop(Exit.FAILED, explain_wrong(counts["wrong"]))


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


def generate(database: str | None, as_json: bool, given: dict[str, Any]) -> None:
    rule = checked(Generate, given)
    done = ads(database, lambda app: schedules.generate_missions(app, rule, actor=ACTOR))
    if as_json:
        shown = ("dry_run", "wanted", "new", "duplicate", "ids")
        print_json({name: getattr(done, name) for name in shown})
        return
    counts = {"wanted": done.wanted, "new": done.new, "known": done.duplicate}
    if done.dry_run:
        print(speak("{wanted} missions: {new} new, {known} there already", **counts))
    else:
        print(speak("missions made: {new}; there already: {known}", **counts))


def recur(database: str | None, as_json: bool, given: dict[str, Any]) -> None:
    rule = checked(Recur, given)
    added = ads(database, lambda app: schedules.add_recurrence(app, rule, actor=ACTOR))
    if as_json:
        print_json(RECURRENCE.dump_python(added, mode="json"))
    else:
        print(speak("{name}: next run at {at}", name=added.name, at=f"{at(added.next_at)} UTC"))


def recurrences(database: str | None, as_json: bool) -> None:
    found = ads(database, schedules.list_recurrences)
    names = ("name", "cron", "timezone", "languages", "media_types", "back", "next_at")
    rows = [RECURRENCE.dump_python(each, mode="json") for each in found]
    show(rows, as_json, names, say("No schedules."))


def forget(database: str | None, as_json: bool, name: str) -> None:
    ads(database, lambda app: schedules.remove_recurrence(app, name, actor=ACTOR))
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        print(speak("schedule {name} was removed", name=clean(name)))


# — the orchestrator —


def start(database: str | None, as_json: bool) -> None:
    state = ads(database, lambda app: orchestrator.start_orchestrator(app, actor=ACTOR))
    print_state(state, as_json)


def stop(database: str | None, as_json: bool, *, now: bool = False) -> None:
    state = ads(database, lambda app: orchestrator.stop_orchestrator(app, actor=ACTOR, now=now))
    print_state(state, as_json)


def status(database: str | None, as_json: bool) -> None:
    print_state(ads(database, orchestrator.get_orchestrator), as_json)


def print_state(state: OrchestratorState, as_json: bool) -> None:
    if as_json:
        print_json(asdict(state))
        return
    print(
        speak(
            "the orchestrator is {wish}; in the queue: {queued}, under way: {running}, sessions:"
            " {sessions}",
            wish=speak("started") if state.wish == "started" else speak("stopped"),
            queued=state.queued_count,
            running=state.running_count,
            sessions=state.session_count,
        )
    )


# — reports —


def report_failures(database: str | None, as_json: bool, hours: int, code: str | None) -> None:
    found = ads(database, lambda app: reports.list_failures(app, hours, code))
    names = ("id", "failed_at", "error_code", "error_message", "retry_count", "status")
    rows = [asdict(each) for each in found]
    show(rows, as_json, names, say("No mission failed in this period."))


def report_workers(database: str | None, as_json: bool, days: int) -> None:
    found = ads(database, lambda app: reports.list_worker_results(app, days))
    names = ("worker_name", "completed_count", "failed_count", "avg_duration_ms", "ads_count")
    rows = [asdict(each) for each in found]
    show(rows, as_json, names, say("No worker completed a mission in this period."))


def report_proxies(database: str | None, as_json: bool, days: int) -> None:
    found = ads(database, lambda app: reports.list_proxy_failures(app, days))
    names = ("name", "active", "fail_count", "session_failures", "rotations", "last_failed_at")
    show([asdict(each) for each in found], as_json, names, say("none yet"))


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

    told = ads(
        database,
        lambda app: adopt_database(
            app, url, actor=ACTOR, apply=apply, schema=schema, source=source
        ),
    )
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
        why = "; ".join(f"{each.path} {tell(each.why)}" for each in list_flaws(error))
        raise BadInput(say("{why}", why=why)) from None


def made(ids: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json({"ids": list(ids)})
    else:
        print("\n".join(ids))


def show(
    rows: Sequence[dict[str, Any]], as_json: bool, names: Sequence[str], nothing: str
) -> None:
    if as_json:
        print_json(rows)
        return
    if not rows:
        console().print(tell(nothing))
        return
    page = table(*names)
    for row in rows:
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
