"""What the extraction of a mission writes."""

from dataclasses import dataclass
from typing import Any

from retoma import db
from retoma.apps.ads.model import Event
from retoma.apps.ads.store.rows import SQL, STORAGE, lasted, milliseconds, tell
from retoma.apps.ads.store.sessions import withdraw
from retoma.engine.run.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mission is extracted."""

    session: int
    worker: str
    proxy: str | None


def parks_of(tx: db.Transaction, mission: str) -> int:
    """How often a person let it go on."""
    return tx.one(SQL.count_parks, into=int, mission=mission) or 0


def scrape_job(tx: db.Transaction, mission: str) -> str | None:
    """Under which id a worker has it."""
    return tx.one(SQL.scrape_job, into=str, mission=mission)


def assign(tx: Transaction, mission: str, place: Place, job: int) -> Place | None:
    """Where it is extracted from here on, whatever session its worker has later; None where the
    mission is no longer to be done (§2.3)."""
    given = {"worker": place.worker, "session": place.session, "proxy": place.proxy}
    if tx.one(SQL.assign_mission, mission=mission, job=job, **given) is None:
        return None
    name = tx.one(SQL.take_worker, into=str, worker=place.worker, mission=mission)
    tx.run(SQL.serve_mission, session=place.session, mission=mission)
    tx.run(SQL.count_served, session=place.session)
    told = {
        "worker_id": place.worker,
        "worker_name": name,
        "proxy_name": place.proxy,
        "mission_id": mission,
    }
    tell(tx, Event.MISSION_ASSIGNED, told, mission=mission)
    return place


def scrape_started(tx: Transaction, mission: str, job: int, job_id: str, config: Any) -> None:
    if tx.one(SQL.name_scrape, mission=mission, job=job, job_id=job_id) is None:
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
    row = tx.one(SQL.keep_scrape, mission=mission, job=job, ads=ads, url=url, empty=int(empty))
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
        tx.run(SQL.set_storage, mission=mission, job=storage.id)
    leave_worker(tx, mission, place)
    return True


def scrape_is_late(tx: db.Transaction, mission: str, timeout: float) -> str | None:
    """The code for which a scrape that nobody can name is to be stopped, if it is."""
    if tx.one(SQL.cancel_asked, mission=mission) is not None:
        return "ERROR201"
    took = lasted(tx, mission, Event.MISSION_ASSIGNED)
    return "ERROR202" if took is not None and took > 1000 * timeout else None


def leave_scrape(tx: Transaction, worker: str, job_id: str) -> None:
    """Nobody saw it end: it is stopped before the worker is given another session."""
    tx.run(SQL.leave_scrape, worker=worker, job_id=job_id)


def forget_scrape(tx: Transaction, worker: str, job_id: str) -> None:
    """It has been seen to be over."""
    tx.run(SQL.forget_scrape, worker=worker, job_id=job_id)


def left_scrapes(tx: db.Transaction, worker: str) -> list[str]:
    """Scrapes of a worker that nobody saw end."""
    return tx.all(SQL.left_scrapes, into=str, worker=worker)


def leave_worker(tx: Transaction, mission: str, place: Place) -> None:
    """The worker is done with a mission; a session that has done its share is given to nobody else."""
    tx.run(SQL.leave_session, session=place.session, mission=mission)
    served = tx.one(SQL.free_worker, into=int, worker=place.worker, mission=mission)
    if served is not None and served >= tx.knob("ads.session_limit"):
        withdraw(tx, place.worker, "session_limit")
