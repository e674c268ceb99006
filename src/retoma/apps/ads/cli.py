"""`retoma ads …`"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from retoma.console.options import AsJson, Database, Name, group

ads = group("Ads: missions scraped by workers through proxies, stored by writers.")
missions = group("The mission bank.")
workers = group("Who scrapes.")
proxies = group("By which sessions go out.")
writers = group("Who stores ads.")
report = group("The audit reports.")
recurrences = group("Missions on a schedule.")
for name, below in {
    "missions": missions,
    "workers": workers,
    "proxies": proxies,
    "writers": writers,
    "report": report,
    "recurrences": recurrences,
}.items():
    ads.add_typer(below, name=name)


class What(StrEnum):
    """What may be imported."""

    PROXIES = "proxies"
    WORKERS = "workers"
    WRITERS = "writers"
    MISSIONS = "missions"


Day = Annotated[datetime, typer.Argument(formats=["%Y-%m-%d"], metavar="DAY")]
Mission = Annotated[str, typer.Argument(metavar="MISSION")]
Ids = Annotated[list[str], typer.Argument(metavar="ID…")]
SomeIds = Annotated[list[str] | None, typer.Argument(metavar="ID…", help="None: all.")]
Languages = Annotated[
    list[str], typer.Option("--language", help="Such as pt; may be given several times.")
]
Media = Annotated[
    list[str] | None,
    typer.Option("--media-type", help="all, video or image; may be given several times."),
]
Queue = Annotated[bool, typer.Option("--queue", help="Add them to the queue too.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; else it is a dry run.")]
Key = Annotated[
    str,
    typer.Option("--api-key", metavar="SECRET", help="Or where it lies: env:NAME, file:/path."),
]
Url = Annotated[str, typer.Option("--url", help="Where it is called.")]
Id = Annotated[str, typer.Argument(metavar="ID")]
NewName = Annotated[str | None, typer.Option("--name", help="How it is called.")]
NewUrl = Annotated[str | None, typer.Option("--url", help="Where it is called.")]
NewKey = Annotated[
    str | None,
    typer.Option("--api-key", metavar="SECRET", help="Or where it lies: env:NAME, file:/path."),
]
Hours = Annotated[int, typer.Option(min=1, max=2160, help="How many hours back.")]
Days = Annotated[int, typer.Option(min=1, max=90, help="How many days back.")]
InOne = Annotated[int, typer.Option("--days", min=1, max=366, help="In one mission.")]


def _day(at: datetime | None) -> str | None:
    return None if at is None else at.date().isoformat()


# — missions —


@missions.command("list")
def missions_list(
    status: Annotated[str | None, typer.Option(help="Only in this status.")] = None,
    language: Annotated[str | None, typer.Option(help="Only with this language.")] = None,
    code: Annotated[str | None, typer.Option(help="Only with this error.")] = None,
    before: Annotated[str | None, typer.Option(help="Older than this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Missions, the newest first."""
    from retoma.apps.ads.commands import missions_list as list_
    from retoma.apps.ads.model import Status
    from retoma.apps.ads.store import MissionSearch
    from retoma.engine.rules.errors import BadInput
    from retoma.words import say

    if status is not None and status not in list(Status):
        raise BadInput(say("is none of {known}", known=", ".join(Status)))
    search = MissionSearch(status=status and Status(status), language=language, code=code)  # type: ignore[arg-type]
    list_(database, json, search, before, limit)


@missions.command("add")
def missions_add(
    first: Day,
    last: Day,
    language: Languages,
    media_type: Annotated[str, typer.Option(help="all, video or image.")] = "all",
    queue: Queue = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A mission into the bank; its id."""
    from retoma.apps.ads.commands import missions_add as add

    told = {"date_start": _day(first), "date_end": _day(last), "media_type": media_type}
    add(database, json, {**told, "languages": language}, queue=queue)


@missions.command("queue")
def missions_queue(mission: Ids, database: Database = None, json: AsJson = False) -> None:
    """Add to the queue, all of them or none; one that has ended begins once more."""
    from retoma.apps.ads.commands import missions_queue as queue

    queue(database, json, mission)


@missions.command("cancel")
def missions_cancel(mission: Mission, database: Database = None, json: AsJson = False) -> None:
    """Cancel it, in whatever state it is."""
    from retoma.apps.ads.commands import missions_cancel as cancel

    cancel(database, json, mission)


@missions.command("delete")
def missions_delete(mission: Ids, database: Database = None, json: AsJson = False) -> None:
    """Out of the bank, all of them or none, if nobody is at them; their log stays."""
    from retoma.apps.ads.commands import missions_delete as delete

    delete(database, json, mission)


@missions.command("resend-failed")
def missions_resend(mission: Ids, database: Database = None, json: AsJson = False) -> None:
    """Send their ads to a writer once more, all of them or none: where some were refused."""
    from retoma.apps.ads.commands import missions_resend as resend

    resend(database, json, mission)


@missions.command("timeline")
def missions_timeline(
    mission: Mission, database: Database = None, json: AsJson = False
) -> None:
    """What happened to it, in order."""
    from retoma.apps.ads.commands import missions_timeline as timeline

    timeline(database, json, mission)


# — workers, proxies, writers —


@workers.command("add")
def workers_add(
    name: Name,
    url: Url,
    api_key: Key,
    storage_domain: Annotated[
        str | None, typer.Option(help="Where its results lie; without one it takes nothing up.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A worker; its id."""
    from retoma.apps.ads.commands import things_add
    from retoma.console.kit import read_secret

    told: dict[str, Any] = {"name": name, "url": url, "api_key": read_secret(api_key)}
    things_add(database, json, "workers", {**told, "storage_domain": storage_domain})


@writers.command("add")
def writers_add(
    name: Name, url: Url, api_key: Key, database: Database = None, json: AsJson = False
) -> None:
    """A writer; its id."""
    from retoma.apps.ads.commands import things_add
    from retoma.console.kit import read_secret

    told = {"name": name, "url": url, "api_key": read_secret(api_key)}
    things_add(database, json, "writers", told)


@proxies.command("add")
def proxies_add(
    host: Annotated[str, typer.Argument(metavar="HOST")],
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Its port.")] = None,
    name: Annotated[str | None, typer.Option(help="Else host:port.")] = None,
    username: Annotated[str | None, typer.Option(help="Whom it knows.")] = None,
    password: Annotated[
        str | None,
        typer.Option(metavar="SECRET", help="Or where it lies: env:NAME, file:/path."),
    ] = None,
    vendor: Annotated[str, typer.Option(help="Who sells it.")] = "",
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A proxy; its id."""
    from retoma.apps.ads.commands import things_add
    from retoma.console.kit import read_secret

    told: dict[str, Any] = {"host": host, "port": port, "name": name, "username": username}
    told |= {"password": read_secret(password), "vendor": vendor}
    things_add(database, json, "proxies", told)


def _operate(below: typer.Typer, sort: str) -> None:
    """The verbs that all three have."""

    @below.command("list")
    def list_(database: Database = None, json: AsJson = False) -> None:
        """All of them; of their secrets nothing."""
        from retoma.apps.ads.commands import things_list

        things_list(database, json, sort)

    @below.command("test")
    def test(ids: SomeIds = None, database: Database = None, json: AsJson = False) -> None:
        """Ask for health tests; a runner does them."""
        from retoma.apps.ads.commands import things_test

        things_test(database, json, sort, ids or [])

    @below.command("activate")
    def activate(ids: Ids, database: Database = None, json: AsJson = False) -> None:
        """Let them be used, all of them or none."""
        from retoma.apps.ads.commands import things_switch

        things_switch(database, json, sort, ids, on=True)

    @below.command("deactivate")
    def deactivate(ids: Ids, database: Database = None, json: AsJson = False) -> None:
        """What runs is finished, then they are used no more; all of them or none."""
        from retoma.apps.ads.commands import things_switch

        things_switch(database, json, sort, ids, on=False)

    @below.command("delete")
    def delete(ids: Ids, database: Database = None, json: AsJson = False) -> None:
        """Only those nobody uses, all of them or none; what was told of them stays."""
        from retoma.apps.ads.commands import things_delete

        things_delete(database, json, sort, ids)


_operate(workers, "workers")
_operate(proxies, "proxies")
_operate(writers, "writers")


@workers.command("change")
def workers_change(
    worker: Id,
    name: NewName = None,
    url: NewUrl = None,
    api_key: NewKey = None,
    storage_domain: Annotated[
        str | None, typer.Option(help="Where its results lie; empty: nowhere.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What is named becomes other; its address only while it has no session."""
    from retoma.apps.ads.commands import things_change
    from retoma.console.kit import read_secret

    told: dict[str, Any] = {"name": name, "url": url, "api_key": read_secret(api_key)}
    things_change(database, json, "workers", worker, {**told, "storage_domain": storage_domain})


@writers.command("change")
def writers_change(
    writer: Id,
    name: NewName = None,
    url: NewUrl = None,
    api_key: NewKey = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What is named becomes other; its address only while it stores nothing."""
    from retoma.apps.ads.commands import things_change
    from retoma.console.kit import read_secret

    told = {"name": name, "url": url, "api_key": read_secret(api_key)}
    things_change(database, json, "writers", writer, told)


@proxies.command("change")
def proxies_change(
    proxy: Id,
    host: Annotated[str | None, typer.Option(help="Where it stands.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0: none.")] = None,
    name: NewName = None,
    username: Annotated[
        str | None, typer.Option(help="Whom it knows; empty: nobody, without a password.")
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(metavar="SECRET", help="Or where it lies: env:NAME, file:/path."),
    ] = None,
    vendor: Annotated[str | None, typer.Option(help="Who sells it.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What is named becomes other; its address only while no session goes out by it."""
    from retoma.apps.ads.commands import things_change
    from retoma.console.kit import read_secret

    told: dict[str, Any] = {"host": host, "port": port, "name": name, "username": username}
    told |= {"password": read_secret(password), "vendor": vendor}
    things_change(database, json, "proxies", proxy, told)


@workers.command("reset")
def workers_reset(worker: Id, database: Database = None, json: AsJson = False) -> None:
    """A worker in error is idle at once."""
    from retoma.apps.ads.commands import worker_reset

    worker_reset(database, json, worker)


@workers.command("relocate")
def workers_relocate(worker: Id, database: Database = None, json: AsJson = False) -> None:
    """Say that it is lost: its session is over, its mission goes on elsewhere."""
    from retoma.apps.ads.commands import worker_relocate

    worker_relocate(database, json, worker)


# — many at once —


@ads.command("import")
def import_(
    what: Annotated[
        What, typer.Argument(metavar="WHAT", help="proxies, workers, writers or missions.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="`-`: standard input.")],
    apply: Apply = False,
    test: Annotated[bool, typer.Option("--test", help="Test what is added.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Add what a file says line by line; first a dry run: what is new, double or wrong."""
    from retoma.apps.ads.commands import import_ as take
    from retoma.apps.ads.service.intake import Intake

    take(database, json, Intake(what), file, apply=apply, test=test)


@ads.command("generate")
def generate(
    first: Day,
    last: Day,
    language: Languages,
    media_type: Media = None,
    days: InOne = 1,
    queue: Queue = False,
    apply: Apply = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Missions for a range of days, by language and media type; those there already are left."""
    from retoma.apps.ads.commands import generate as make

    told: dict[str, Any] = {"date_start": _day(first), "date_end": _day(last), "days": days}
    told |= {"languages": language, "media_types": media_type, "queue": queue}
    make(database, json, {**told, "dry_run": not apply})


@recurrences.command("add")
def recurrences_add(
    name: Name,
    language: Languages,
    cron: Annotated[str, typer.Option(help="minute hour day month weekday.")] = "0 6 * * *",
    media_type: Media = None,
    back: Annotated[int, typer.Option(min=1, max=366, help="How many days back.")] = 1,
    days: InOne = 1,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """At every tick missions for the days before it, added to the queue."""
    from retoma.apps.ads.commands import recur

    told: dict[str, Any] = {"name": name, "cron": cron, "back": back, "days": days}
    recur(database, json, {**told, "languages": language, "media_types": media_type})


@recurrences.command("list")
def recurrences_list(database: Database = None, json: AsJson = False) -> None:
    """List the schedules of missions."""
    from retoma.apps.ads.commands import recurrences as list_

    list_(database, json)


@recurrences.command("remove")
def recurrences_remove(name: Name, database: Database = None, json: AsJson = False) -> None:
    """It ticks no more; its missions stay."""
    from retoma.apps.ads.commands import forget

    forget(database, json, name)


# — the orchestrator —


@ads.command("start")
def start(database: Database = None, json: AsJson = False) -> None:
    """Let it work: a wish that outlives every process."""
    from retoma.apps.ads.commands import start as begin

    begin(database, json)


@ads.command("stop")
def stop(
    now: Annotated[bool, typer.Option("--now", help="Cancel what runs.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What runs is finished, then the sessions end."""
    from retoma.apps.ads.commands import stop as end

    end(database, json, now=now)


@ads.command("status")
def status(database: Database = None, json: AsJson = False) -> None:
    """Whether it is to work, and what is left to do."""
    from retoma.apps.ads.commands import status as tell

    tell(database, json)


# — reports —


@report.command("failures")
def report_failures(
    hours: Hours = 24,
    code: Annotated[str | None, typer.Option(help="Only with this error.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Missions that failed of late."""
    from retoma.apps.ads.commands import report_failures as tell

    tell(database, json, hours, code)


@report.command("workers")
def report_workers(days: Days = 7, database: Database = None, json: AsJson = False) -> None:
    """What each worker has brought home."""
    from retoma.apps.ads.commands import report_workers as tell

    tell(database, json, days)


@report.command("proxies")
def report_proxies(days: Days = 7, database: Database = None, json: AsJson = False) -> None:
    """How proxies fare, the worst first."""
    from retoma.apps.ads.commands import report_proxies as tell

    tell(database, json, days)


# — adoption —


@ads.command("adopt")
def adopt(
    dsn: Annotated[
        str, typer.Argument(metavar="DSN", help="Its address, or env:NAME, file:/path.")
    ],
    apply: Apply = False,
    schema: Annotated[str, typer.Option(help="Where its tables are.")] = "public",
    source: Annotated[
        str | None, typer.Option(help="How it is called here; else by its host and name.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Take over a database of the document's shape; first a dry run with counts."""
    from retoma.apps.ads.commands import adopt as take

    take(database, json, dsn, apply=apply, schema=schema, source=source)
