"""List, add, queue, cancel, resume, resend and delete missions; what happened to one."""

from collections.abc import Sequence

from retoma import db
from retoma.apps.ads import store
from retoma.apps.ads.model import NewMission
from retoma.apps.ads.service.connections import read
from retoma.apps.ads.store import FailedItem, MissionRecord, MissionSearch, reports
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma


async def list_missions(
    retoma: Retoma, search: MissionSearch, *, before: str | None = None, limit: int
) -> list[MissionRecord]:
    """List the missions that match, the newest first, older than the mission `before`."""
    return await read(
        retoma, lambda tx: store.list_missions(tx, search, before=before, n=limit)
    )


async def find_missions(retoma: Retoma, search: MissionSearch, *, most: int) -> list[str]:
    """Find the ids of all missions that match; refuse a search that matches more than `most`."""
    return await read(retoma, lambda tx: store.find_missions(tx, search, most=most))


async def count_missions(retoma: Retoma) -> dict[str, int]:
    """Count the missions of each status."""
    return await read(retoma, store.count_by_status)


async def list_running_missions(retoma: Retoma, limit: int) -> list[store.RunningMission]:
    return await read(retoma, lambda tx: store.list_running_missions(tx, limit))


async def get_mission(retoma: Retoma, mission: str) -> MissionRecord:
    return await read(retoma, lambda tx: store.get_mission(tx, mission))


async def get_mission_holder(retoma: Retoma, mission: str) -> store.MissionHolder:
    return await read(retoma, lambda tx: store.get_mission_holder(tx, mission))


async def is_cancel_unconfirmed(retoma: Retoma, mission: str) -> bool:
    """Whether the mission is canceled while its job has not ended."""
    return await read(retoma, lambda tx: store.stops_unseen(tx, mission))


async def list_failed_items(
    retoma: Retoma, mission: str, limit: int = store.MOST_ITEMS
) -> list[FailedItem]:
    """List the first of the ads that a writer refused; refuse a mission that does not exist."""

    def list_(tx: db.Transaction) -> list[FailedItem]:
        store.get_mission(tx, mission)
        return store.list_failed_items(tx, mission, limit)

    return await read(retoma, list_)


async def get_timeline(retoma: Retoma, mission: str) -> list[reports.Happened]:
    """List what happened to a mission, in order; a deleted mission keeps its timeline."""
    return await read(retoma, lambda tx: reports.timeline(tx, mission))


async def add_missions(
    retoma: Retoma, missions: Sequence[NewMission], *, actor: str, queue: bool = False
) -> list[str]:
    """Add missions to the Banco de Missões, and to the queue if asked; all of them or none."""

    def add(tx: Transaction) -> list[str]:
        ids = store.add_missions(tx, missions, actor=actor)
        if queue:
            store.queue_missions(tx, ids, actor=actor)
        return ids

    return await retoma.write(add)


async def queue_missions(
    retoma: Retoma, missions: Sequence[str], *, actor: str, again: bool = True
) -> None:
    """Queue all of the missions or none. With `again` an ended mission begins a new generation."""
    await retoma.write(lambda tx: store.queue_missions(tx, missions, actor=actor, again=again))


async def resume_missions(retoma: Retoma, missions: Sequence[str], *, actor: str) -> None:
    """Resume the parked jobs of all of the missions, or none."""
    await retoma.write(lambda tx: store.resume_parked(tx, missions, actor=actor))


async def resend_missions(retoma: Retoma, missions: Sequence[str], *, actor: str) -> None:
    """Send the ads of all of the missions to a writer again, or none."""

    def resend(tx: Transaction) -> None:
        for mission in missions:
            store.resend_failed(tx, mission, actor=actor)

    await retoma.write(resend)


async def delete_missions(retoma: Retoma, missions: Sequence[str], *, actor: str) -> None:
    """Delete all of the missions or none; a mission in the queue or at work is refused."""
    await retoma.write(lambda tx: store.delete_missions(tx, missions, actor=actor))


async def cancel_mission(retoma: Retoma, mission: str, *, actor: str) -> str:
    """Cancel a mission and return its status; a canceled mission may be canceled again."""
    return await retoma.write(lambda tx: store.cancel_mission(tx, mission, actor=actor))


async def cancel_missions(retoma: Retoma, missions: Sequence[str], *, actor: str) -> int:
    """Cancel each mission by itself and return how many; of several, ended missions are passed over."""
    canceled = 0
    for mission in missions:
        try:
            await cancel_mission(retoma, mission, actor=actor)
        except IllegalMove:
            if len(missions) == 1:
                raise
        else:
            canceled += 1
    return canceled
