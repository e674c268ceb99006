"""§5.6 row by row: what an orchestrator left behind, what became of it meanwhile, what the next one does."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import date

from tests.apps.ads.around import Around, Asked, House
from tests.engine.aids import eventually
from tests.programs import logbooks
from tests.programs.processes import PATIENCE

SLOW = {"trouble": "slow", "seconds": 0.4, "path": "/", "times": None}
MONTH = 11  # whose days nobody else in this world asks for
KILLED = ""  # no point of its own: by the test, once its mission is being scraped

Meanwhile = Callable[[House, str], Awaitable[None]]


async def nothing(found: House, mission: str) -> None: ...


async def ends(found: House, mission: str) -> None:
    """The worker is done with it before anybody comes back."""

    async def quiet() -> bool:
        left = logbooks.left(found.world.logs)
        return not [each for each in left if each.startswith("scrape")]

    await eventually(quiet, within=PATIENCE)


async def gets_on(found: House, mission: str) -> None:
    found.world.peace()
    await ends(found, mission)


async def is_written(found: House, mission: str) -> None:
    async def done() -> bool:
        return set(handed_over(found.world)) == {"done"}

    await eventually(done, within=PATIENCE)


async def writer_is_away(found: House, mission: str) -> None:
    """It died with the work in its hands; the orchestrator too, before it could ask."""

    async def dead() -> bool:
        child = found.world.writer.child
        return child is None or child.poll() is not None

    await eventually(dead, within=PATIENCE)
    found.kill("one")
    found.world.writer.kill()


async def is_asked_for(found: House, mission: str) -> None:
    """By whoever came next, while the worker still scrapes."""
    asked = questions(found.world)

    async def again() -> bool:
        return questions(found.world) > asked

    await eventually(again, within=PATIENCE)
    assert logbooks.left(found.world.logs)
    found.world.peace()


async def writer_comes_back(found: House, mission: str) -> None:
    await found.booted("one")
    found.world.writer.start()


@dataclass(frozen=True, slots=True)
class Left:
    """What an orchestrator left behind when it died, and what has become of it meanwhile."""

    mission: tuple[str, str]  # status and checkpoint at its death
    what: str
    crash: str = KILLED
    before: Meanwhile = nothing  # the next one comes
    after: Meanwhile = nothing
    scrape: str | None = None  # how its scrape misbehaves
    scrapes: tuple[int, ...] = (1,)  # that workers begin in all
    slow: bool = False


AGAIN = (2, 3)  # the other worker may have been told to fail too
QUEUED = ("queued", "atribuido")
EXTRACTION, STORAGE = ("running", "extracao"), ("running", "armazenamento")
EVERY = (
    Left(EXTRACTION, "running", slow=True, after=is_asked_for),
    Left(QUEUED, "nobody has begun", "session.intent"),
    Left(QUEUED, "its session was asked for", "session.answer"),
    Left(QUEUED, "its session is open", "session.saved"),
    Left(EXTRACTION, "never sent", "scrape.intent"),
    Left(EXTRACTION, "perhaps sent, and never arrived", "scrape.request"),
    # A worker without keys cannot say for whom it scrapes: it is stopped, and seen to have, before.
    Left(EXTRACTION, "sent, its id unknown", "scrape.answer", slow=True, scrapes=(1, 2)),
    Left(EXTRACTION, "completed", slow=True, before=gets_on),
    Left(EXTRACTION, "failed", "scrape.saved", ends, scrape="fails", scrapes=AGAIN),
    Left(EXTRACTION, "not there", "scrape.saved", ends, scrape="vanishes", scrapes=AGAIN),
    Left(
        STORAGE,
        "processing",
        "process.answer={writer}",
        before=writer_is_away,
        after=writer_comes_back,
    ),
    Left(STORAGE, "completed", "process.saved", is_written),
    Left(STORAGE, "perhaps sent, and never arrived", "process.request"),
)


async def die(found: House, left: Left, wanted: Asked) -> str:
    """An orchestrator takes a mission, and is no more; the mission."""
    world = found.world
    assert world.writer.child is not None
    for worker in world.workers:
        if left.scrape:
            world.misbehave(worker, scrape=left.scrape)
    if left.slow:
        world.trouble(**SLOW)
    found.orchestrate("one", left.crash.format(writer=world.writer.child.pid))
    [mission] = await found.add(wanted)
    if left.crash == KILLED:
        await found.until(mission, "checkpoint = 'extracao' AND worker_job_id IS NOT NULL")
        found.kill("one")
    elif "=" not in left.crash:
        await found.died("one")
    await left.before(found, mission)
    return mission


def mission_of(left: Left, place: int) -> Asked:
    day = date(2025, MONTH, 1 + place)
    last = date(2025, MONTH, 30) if left.slow else day
    return day, last, ("pt",)


def begun(world: Around) -> int:
    return sum(line["event"] == "scrape.began" for line in logbooks.lines(world.logs))


def questions(world: Around) -> int:
    """How often workers were asked for a scrape of theirs."""
    told = "".join(each.log.read_text() for each in world.workers)
    return told.count('"route": "/scrape/{job_id}"')


def handed_over(world: Around) -> list[str]:
    """The states of all that the writer was ever given, by its own books."""
    books = f"file:{world.folder / 'writer.db'}?mode=ro"
    with closing(sqlite3.connect(books, uri=True)) as own:
        return [state for (state,) in own.execute("SELECT state FROM jobs")]
