"""What the extraction of a mission writes."""

from dataclasses import dataclass
from typing import Any

from retoma import db
from retoma.apps.ads.model import Event
from retoma.apps.ads.store.rows import STORAGE, lasted, milliseconds, tell, verb
from retoma.apps.ads.store.sessions import withdraw
from retoma.engine.run.transaction import Transaction

ASSIGN_MISSION = verb("assign_mission")
CANCEL_ASKED = verb("cancel_asked")
COUNT_PARKS = verb("count_parks")
COUNT_SERVED = verb("count_served")
FREE_WORKER = verb("free_worker")
KEEP_SCRAPE = verb("keep_scrape")
LEAVE_SESSION = verb("leave_session")
NAME_SCRAPE = verb("name_scrape")
SCRAPE_JOB = verb("scrape_job")
FORGET_SCRAPE = verb("forget_scrape")
LEAVE_SCRAPE = verb("leave_scrape")
LEFT_SCRAPES = verb("left_scrapes")
SERVE_MISSION = verb("serve_mission")
SET_STORAGE = verb("set_storage")
TAKE_WORKER = verb("take_worker")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mission is extracted."""

    session: int
    worker: str
    proxy: str | None


def parks_of(tx: db.Transaction, mission: str) -> int:
    """How often a person let it go on."""
    return tx.one(COUNT_PARKS, into=int, mission=mission) or 0


def scrape_job(tx: db.Transaction, mission: str) -> str | None:
    """Under which id a worker has it."""
    return tx.one(SCRAPE_JOB, into=str, mission=mission)


def assign(tx: Transaction, mission: str, place: Place, job: int) -> Place | None:
    """Where it is extracted from here on, whatever session its worker has later; None where the
    mission is no longer to be done (§2.3)."""
    given = {"worker": place.worker, "session": place.session, "proxy": place.proxy}
    if tx.one(ASSIGN_MISSION, mission=mission, job=job, **given) is None:
        return None
    name = tx.one(TAKE_WORKER, into=str, worker=place.worker, mission=mission)
    tx.run(SERVE_MISSION, session=place.session, mission=mission)
    tx.run(COUNT_SERVED, session=place.session)
    told = {
        "worker_id": place.worker,
        "worker_name": name,
        "proxy_name": place.proxy,
        "mission_id": mission,
    }
    tell(tx, Event.MISSION_ASSIGNED, told, mission=mission)
    return place


def scrape_started(tx: Transaction, mission: str, job: int, job_id: str, config: Any) -> None:
    if tx.one(NAME_SCRAPE, mission=mission, job=job, job_id=job_id) is None:
        return
    told = {"worker_job_id": job_id, "mission_id": mission, "mission_config": config}
    tell(tx, Event.SCRAPE_STARTED, told, mission=mission)


def scraped(
    tx: Transaction,
    mission: str,
    place: Place,
    job: int,
    job_id: str,
    ads: int,
    url: str | None,
) -> bool:
    """The worker is free, the writer comes next; or the mission is done, where nothing was found."""
    empty = ads == 0
    row = tx.one(KEEP_SCRAPE, mission=mission, job=job, ads=ads, url=url, empty=int(empty))
    if row is None:
        return False
    if empty:
        tell(tx, Event.SCRAPE_EMPTY, {"worker_job_id": job_id}, mission=mission)
        done = {"total_duration_ms": milliseconds(*row), "ads_count": 0, "success_count": 0}
        tell(tx, Event.MISSION_COMPLETED, {**done, "failed_count": 0}, mission=mission)
    else:
        # `scrape_started` is told with the first answer, a poll late; what failed before is not its.
        took = lasted(tx, mission, Event.MISSION_ASSIGNED)
        told = {"worker_job_id": job_id, "ads_count": ads, "duration_ms": took}
        tell(tx, Event.SCRAPE_COMPLETED, told, mission=mission)
        storage = tx.submit(STORAGE, mission, key=f"{mission}/{job}")
        tx.run(SET_STORAGE, mission=mission, job=storage.id)
    leave_worker(tx, mission, place)
    return True


def scrape_is_late(tx: db.Transaction, mission: str, timeout: float) -> str | None:
    """The code for which a scrape that nobody can name is to be stopped, if it is."""
    if tx.one(CANCEL_ASKED, mission=mission) is not None:
        return "ERROR201"
    took = lasted(tx, mission, Event.MISSION_ASSIGNED)
    return "ERROR202" if took is not None and took > 1000 * timeout else None


def leave_scrape(tx: Transaction, worker: str, job_id: str) -> None:
    """Nobody saw it end: it is stopped before the worker is given another session."""
    tx.run(LEAVE_SCRAPE, worker=worker, job_id=job_id)


def forget_scrape(tx: Transaction, worker: str, job_id: str) -> None:
    """It has been seen to be over."""
    tx.run(FORGET_SCRAPE, worker=worker, job_id=job_id)


def left_scrapes(tx: db.Transaction, worker: str) -> list[str]:
    """Scrapes of a worker that nobody saw end."""
    return tx.all(LEFT_SCRAPES, into=str, worker=worker)


def leave_worker(tx: Transaction, mission: str, place: Place) -> None:
    """The worker is done with a mission; a session that has done its share is given to nobody else."""
    tx.run(LEAVE_SESSION, session=place.session, mission=mission)
    served = tx.one(FREE_WORKER, into=int, worker=place.worker, mission=mission)
    if served is not None and served >= tx.knob("ads.session_limit"):
        withdraw(tx, place.worker, "session_limit")
