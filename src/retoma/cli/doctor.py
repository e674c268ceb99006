"""`retoma doctor`: what may be wrong, in lines that say what to do about it. Changes nothing."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from pathlib import Path
from urllib.parse import urlsplit

from retoma import db, settings
from retoma.bootstrap import application_of, build_tools
from retoma.cli.desk import clean, console, must_exist, print_json, shown, table
from retoma.cli.exits import Exit, Stop, code_of
from retoma.codec import decode
from retoma.db import Database, DatabaseError, Full, Transaction, Unfit, adhoc, migrations
from retoma.engine import checker, insights
from retoma.engine.confine import find_gaps
from retoma.engine.errors import BadInput, Transient
from retoma.engine.insights import Health, RunnerSeen
from retoma.engine.isolate import Isolate
from retoma.engine.ledger import read_ledger
from retoma.engine.ports import Clock, Ids
from retoma.engine.states import State
from retoma.engine.store import budget
from retoma.library import Retoma, can_write
from retoma.manifest import Standing, load
from retoma.settings import Settings
from retoma.words import Said, say, speak, tell

SKEW = 5.0  # seconds between two clocks that a person might trip over
SLOW_BELL = 0.25  # seconds
BELL_PATIENCE = 3.0
MOST_BUDGETS = 1_000  # that are looked at
UNFOLDED = 10_000  # tallies; folded every second while a runner lives
LITTLE_ROOM = 1 << 30  # bytes
NO_ROOM = 64 << 20
MAKE_ROOM = say("make room: without it nothing can be claimed or saved")
ROOM_TAKEN = adhoc(
    "SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)",
    "SELECT pg_database_size(current_database())",
)


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


VERDICTS = {
    Standing.READY: Verdict.OK,
    Standing.UNKNOWN: Verdict.WARN,
    Standing.REFUSED: Verdict.FAIL,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, what was found, what to do about it."""

    name: str
    verdict: Verdict
    found: Said
    todo: Said | None = None


def doctor(
    database: str | None, as_json: bool, *, deep: bool = False, ledger: Path | None = None
) -> None:
    """Ends with 1 where something fails, 69 where the database cannot be reached."""
    checks: list[Check] = []
    code = Exit.OK
    try:
        asyncio.run(_examine(database, checks, deep=deep, ledger=ledger))
    except (DatabaseError, Stop, BadInput) as error:
        code = Exit.FAILED if isinstance(error, BadInput | Unfit) else code_of(error)
        checks.append(_broken(error))
    if any(check.verdict is Verdict.FAIL for check in checks):
        code = code if code is not Exit.OK else Exit.FAILED
    _say(checks, as_json)
    if code is not Exit.OK:
        raise SystemExit(code)


def _broken(error: Exception) -> Check:
    found = (
        error.args[0]
        if error.args and isinstance(error.args[0], Said)
        else say("{error}", error=error)
    )
    if isinstance(error, BadInput):
        return Check(
            "settings", Verdict.FAIL, found, say("change one of them in the environment")
        )
    if isinstance(error, Unfit):
        return Check("schema", Verdict.FAIL, found, say("use the database that is meant"))
    return Check(
        "database", Verdict.FAIL, found, say("start the database, or name another: --database")
    )


async def _examine(
    database: str | None, checks: list[Check], *, deep: bool, ledger: Path | None
) -> None:
    chosen = settings.read(database_url=database)
    checks.append(_settings(chosen))
    checks.append(await _children())
    url = chosen.database_url
    must_exist(url)
    opened = db.open(url)
    try:
        await opened.write(lambda _: None, verb="probe", patience=0)
        checks.append(Check("database", Verdict.OK, say("{url} answers", url=shown(url))))
        note = checks.append  # at once: what was seen before a failure is told too
        async for check in _look(opened, chosen):
            note(check)
        checks += await _services(chosen)
        if deep and not any(check.name == "schema" and check.todo for check in checks):
            checks += await _deep(opened, ledger)
    finally:
        await asyncio.get_running_loop().run_in_executor(None, opened.close)


async def _look(database: Database, chosen: Settings) -> AsyncIterator[Check]:
    status = await migrations.status(database)
    yield _schema(status)
    if status.pending:
        return  # what is asked below needs all of it
    clock = Clock()
    before = clock.wall()
    health = await database.read(insights.health)
    after = clock.wall()
    yield await _writes(database)
    yield _skew(health.now.timestamp(), before, after)
    yield await _bell(database, clock)
    yield _writing(database.dialect, health)
    runners = await database.read(insights.list_runners)
    for check in (*_runners(runners, chosen), _orphans(health), _tallies(health, after)):
        yield check
    yield await database.read(lambda tx: _unknown(tx, runners))
    yield await database.read(lambda tx: _budgets(tx, chosen.timezone))
    yield await database.read(lambda tx: _room(tx, database.url))


# — the checks, one each —


def _settings(chosen: Settings) -> Check:
    return Check(
        "settings",
        Verdict.OK,
        say(
            "no contradictions: lease {lease:g} s, beat {beat:g} s, tick {tick:g} s, {slots} slots",
            lease=chosen.lease,
            beat=chosen.beat,
            tick=chosen.tick,
            slots=chosen.slots,
        ),
    )


async def _children() -> Check:
    """What a child that reads a stranger's file could still do, tried in one."""
    isolate = Isolate()
    try:
        answer = await isolate.in_child(find_gaps, (), confined=True)
    except (Transient, OSError) as error:
        return Check(
            "children",
            Verdict.FAIL,
            say("no child can be confined: {error}", error=error),
            say("documents and pages of strangers cannot be read here: see the log"),
        )
    finally:
        await asyncio.get_running_loop().run_in_executor(None, isolate.close)
    gaps = decode(answer, list[str])
    if not gaps:
        return Check(
            "children",
            Verdict.OK,
            say(
                "those that read strangers' files have no environment, network, files or programs"
            ),
        )
    return Check(
        "children",
        Verdict.WARN,
        say(
            "this kernel lets children that read strangers' files reach: {gaps}",
            gaps=_listed(gaps),
        ),
        say("use Linux 5.13 or later, and let the container use seccomp and Landlock"),
    )


async def _services(chosen: Settings) -> list[Check]:
    """Whether the services of the applications take our keys and know our models."""
    checks = []
    async with Retoma(chosen.database_url) as app:
        for name in filter(None, chosen.applications.split(",")):
            where = application_of(name).checks
            if where is None:
                continue
            tools = build_tools(app, chosen)
            try:
                found = await load(where)(tools)
            finally:
                await tools.close()
            checks += [
                Check(each.name, VERDICTS[each.standing], each.found, each.todo)
                for each in found
            ]
    return checks


def _schema(status: migrations.Status) -> Check:
    if status.pending:
        return Check(
            "schema",
            Verdict.FAIL,
            say("migrations not yet applied: {numbers}", numbers=_listed(status.pending)),
            say("`retoma db upgrade`"),
        )
    return Check(
        "schema", Verdict.OK, say("at {number}, nothing is missing", number=max(status.applied))
    )


def _skew(database: float, before: float, after: float) -> Check:
    """Half of the round trip is nobody's fault."""
    skew = database - (before + after) / 2
    found = say(
        "the database's clock is {skew:+.3f} s from this host's; leases and schedules go by the"
        " database's alone, so nothing is lost by it",
        skew=skew,
    )
    if abs(skew) <= SKEW:
        return Check("clock", Verdict.OK, found)
    return Check(
        "clock",
        Verdict.WARN,
        found,
        say("set the clocks right, or times in logs and in the database will not agree"),
    )


async def _bell(database: Database, clock: Clock) -> Check:
    topic = f"doctor:{Ids().new()}"
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, database.wait_bell, 0.0)  # from now on it is heard
    deaf = Check(
        "bell",
        Verdict.WARN,
        say("no bell can be heard here: new work is found by the tick alone"),
        say(
            "use a direct connection instead of a pooler, or a folder where sockets may be made"
        ),
    )
    if await loop.run_in_executor(None, database.deaf):
        return deaf
    began = clock.now()
    await database.write(lambda tx: _ring(tx, topic), verb="doctor")
    while clock.now() - began < BELL_PATIENCE:
        if topic in await loop.run_in_executor(None, database.wait_bell, BELL_PATIENCE):
            return _heard(clock.now() - began)
    return deaf


def _ring(tx: Transaction, topic: str) -> None:
    tx.one(ROOM_TAKEN)  # a transaction that asks nothing is none, and rings nobody
    tx.ring(topic)


def _heard(seconds: float) -> Check:
    found = say("rung and heard in {ms:.1f} ms", ms=seconds * 1000)
    if seconds <= SLOW_BELL:
        return Check("bell", Verdict.OK, found)
    return Check(
        "bell",
        Verdict.WARN,
        found,
        say("a job may start so much later: look at the load of the database and the network"),
    )


def _writing(dialect: str, health: Health) -> Check:
    """What a commit is worth when the power fails."""
    found = say(
        "journal {journal}, synchronous {synchronous}",
        journal=health.journal,
        synchronous=health.synchronous,
    )
    if dialect == "sqlite":
        durable, quick = health.synchronous in ("2", "3"), health.journal == "wal"
        todo = say(
            "let nobody change journal_mode: WAL lets readers and the writer go on together"
        )
    else:
        found = say(
            "fsync {fsync}, synchronous_commit {synchronous}",
            fsync=health.journal,
            synchronous=health.synchronous,
        )
        durable, quick = health.journal == "on" and health.synchronous != "off", True
        todo = say(
            "set fsync and synchronous_commit on: a power cut loses what was answered for"
        )
    if durable and quick:
        return Check("durability", Verdict.OK, found)
    return Check("durability", Verdict.FAIL if not durable else Verdict.WARN, found, todo)


def _runners(runners: list[RunnerSeen], chosen: Settings) -> Iterator[Check]:
    living = [each for each in runners if each.living]
    held, slots = sum(each.held for each in living), sum(each.slots for each in living)
    if not living:
        yield Check(
            "runners",
            Verdict.WARN,
            say("none is alive: nothing runs"),
            say("`retoma runner --app package.module:app`"),
        )
        return
    yield Check(
        "runners",
        Verdict.OK,
        say("{n} alive, {held} of {slots} slots in use", n=len(living), held=held, slots=slots),
    )
    for each in living:
        if each.trouble:
            yield Check(
                "runners",
                Verdict.FAIL,
                say(
                    "{runner} claims nothing: {trouble}", runner=each.name, trouble=each.trouble
                ),
                say("put that right; it goes on by itself"),
            )
    yield from _leases(living, chosen)


def _leases(living: list[RunnerSeen], chosen: Settings) -> Iterator[Check]:
    """One is declared lost by the lease of another: they should mean the same by it."""
    lengths = {round((each.lease_until - each.beat_at).total_seconds()) for each in living}
    if lengths <= {round(chosen.lease)}:
        return
    yield Check(
        "runners",
        Verdict.WARN,
        say(
            "leases differ: runners have {theirs} s, this environment says {ours:g} s",
            theirs=_listed(sorted(lengths)),
            ours=chosen.lease,
        ),
        say("give every process the same RETOMA_LEASE"),
    )


def _orphans(health: Health) -> Check:
    if not health.orphans:
        return Check("leases", Verdict.OK, say("every job that runs has a runner that lives"))
    return Check(
        "leases",
        Verdict.WARN,
        say("{n} jobs are held by runners whose lease is over", n=health.orphans),
        say(
            "any living runner takes them back by itself: start one, or wait for its next tick"
        ),
    )


def _tallies(health: Health, now: float) -> Check:
    since = 0.0 if health.unfolded_since is None else now - health.unfolded_since.timestamp()
    found = say("{n} tallies not folded", n=health.unfolded)
    if health.unfolded <= UNFOLDED:
        return Check("counters", Verdict.OK, found)
    return Check(
        "counters",
        Verdict.WARN,
        say(
            "{found}, the oldest {seconds:.0f} s old: every count adds them up",
            found=found,
            seconds=since,
        ),
        say("a living runner folds them every second: start one"),
    )


def _unknown(tx: Transaction, runners: list[RunnerSeen]) -> Check:
    """Kinds that wait while no living runner knows them."""
    known = {tag.rpartition("@")[0] for each in runners if each.living for tag in each.knows}
    waiting = {
        kind: states[State.WAITING]
        for kind, states in insights.count_kinds(tx).items()
        if states.get(State.WAITING) and kind not in known
    }
    if not waiting or not known:
        return Check(
            "kinds",
            Verdict.OK,
            say("every kind that waits is known to a runner, or none lives"),
        )
    return Check(
        "kinds",
        Verdict.WARN,
        say(
            "no living runner knows what waits: {kinds}",
            kinds=_listed(f"{n} {kind}" for kind, n in waiting.items()),
        ),
        say("start a runner of the application that has these kinds"),
    )


def _budgets(tx: Transaction, zone: str) -> Check:
    """What is nearly spent, what jobs wait for, and what no budget can count."""
    seen = budget.list_budgets(tx, zone, limit=MOST_BUDGETS)
    told = [
        say(
            "{budget} has {spent} of {money}",
            budget=each.budget.gate,
            spent=str(each.spent),
            money=str(each.budget.money),
        )
        for each in seen
        if each.warning
    ]
    unknown = sum(each.unpriced for each in seen)
    if unknown:
        told.append(say("{n} charges have no price and count against no budget", n=unknown))
    if any(each.unconverted is not None for each in seen):
        told.append(say("money in the other currency is not counted: no exchange rate"))
    if not told:
        return Check("budgets", Verdict.OK, say("none of {n} is nearly spent", n=len(seen)))
    return Check(
        "budgets",
        Verdict.WARN,
        reduce(lambda a, b: say("{a}; {b}", a=a, b=b), told),
        say("raise it, set what is missing (`retoma prices`), or let the jobs wait"),
    )


async def _writes(database: Database) -> Check:
    try:
        await can_write(database, Ids())
    except Full as error:
        return Check("writing", Verdict.FAIL, say("{error}", error=error), MAKE_ROOM)
    return Check("writing", Verdict.OK, say("what is written down has room"))


def _room(tx: Transaction, url: str) -> Check:
    [[taken]] = tx.all(ROOM_TAKEN)
    size = f"{int(taken) / (1 << 20):.1f} MiB"
    path = Path(urlsplit(url).path[1:])
    if tx.dialect != "sqlite":
        found = say(
            "the database has {size}; its server's disk cannot be seen from here", size=size
        )
        return Check("disk", Verdict.OK, found)
    free = shutil.disk_usage(path.parent).free
    found = say(
        "the database has {size}, {free} are free",
        size=size,
        free=f"{free / (1 << 30):.1f} GiB",
    )
    if free >= LITTLE_ROOM:
        return Check("disk", Verdict.OK, found)
    worst = Verdict.FAIL if free < NO_ROOM else Verdict.WARN
    return Check("disk", worst, found, MAKE_ROOM)


async def _deep(database: Database, folder: Path | None) -> list[Check]:
    """Every violation of what the engine promises, an object each."""
    told = None if folder is None else read_ledger(folder)
    found = await database.read(lambda tx: checker.check(tx, told))
    if not found:
        return [Check("deep", Verdict.OK, say("every job, event and total is as it should be"))]
    return [
        Check(
            f"deep: {each.rule}",
            Verdict.FAIL,
            say("{subject}: {found}", subject=each.subject, found=each.found),
            each.todo,
        )
        for each in found
    ]


# — telling —


def _listed(each: Iterable[object]) -> str:
    return ", ".join(str(one) for one in each)


def _say(checks: list[Check], as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "ok": all(check.verdict is not Verdict.FAIL for check in checks),
                "checks": [
                    {
                        "check": check.name,
                        "verdict": check.verdict,
                        "found": tell(check.found),
                        "todo": None if check.todo is None else tell(check.todo),
                    }
                    for check in checks
                ],
            }
        )
        return
    page = table(speak("verdict"), speak("check"), speak("found"), speak("what to do"))
    for check in checks:
        todo = "" if check.todo is None else tell(check.todo)
        page.add_row(
            check.verdict,
            check.name,
            clean(tell(check.found)),
            clean(todo),
            style=COLOURS[check.verdict],
        )
    console().print(page)


COLOURS = {Verdict.OK: "", Verdict.WARN: "yellow", Verdict.FAIL: "red"}
