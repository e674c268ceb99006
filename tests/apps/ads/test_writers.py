"""Which writer has the ads of a mission, when it is given up, and who gets them next (§3)."""

from dataclasses import dataclass
from typing import Any

import pytest

from retoma import State
from retoma.apps.ads import store
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.apps.ads.test_cancel import LONG, named, noted, working_until
from tests.apps.ads.test_operator import troubles
from tests.apps.ads.test_steps import under_way
from tests.outbound.fakes import Asked


@dataclass
class Endless(FakeWriter):
    """Is never done; it may have stored a little more each time it is asked."""

    creeps: bool = False

    def _status(self, job: str) -> dict[str, Any]:
        self.statuses = ["processing"]
        said = super()._status(job)
        done = self.jobs[job] if self.creeps else 1
        return {**said, "progress": {**said["progress"], "processed": done}}


async def parked(house: World) -> Any:
    [job] = await house.app.jobs(kind=store.STORAGE)
    assert job.state is State.PARKED
    return job


@pytest.mark.parametrize(
    ("knob", "creeps", "why"),
    [("timeout_writer", True, "remote_timeout"), ("stall_writer", False, "remote_stalled")],
)
async def test_m4_a_writer_that_is_late_is_error300_and_another_has_it_once_it_is_declared_lost(
    database_url, tmp_path, knob, creeps, why
):
    """It cannot be stopped: nobody sends the ads again beside it (M1)."""
    late, other = Endless(creeps=creeps), FakeWriter()
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[late, other]
    ) as house:
        for name in ("timeout_writer", "stall_writer"):
            await house.app.knobs.set(f"ads.{name}", 200 if name == knob else LONG, actor=WHO)
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert (row["status"], row["error_code"]) == ("running", "ERROR300")
        assert why in row["error_message"]
        assert (await house.events(mission)).count("writer_failed") == 1
        job = await parked(house)
        assert job.reason == "unknown_remote"
        await house.app.resume(job.id)
        await house.drain()
        assert (len(late.log), other.log) == (1, []), "looked at again, and not sent again"

        await house.app.remote.send_again((await parked(house)).id)
        await house.drain()
        [(_, first)], [(_, second)] = late.log, other.log
        assert first["job_id"] != second["job_id"]
        row = await house.mission(mission)
        assert (row["status"], row["error_code"]) == ("completed", None)
        assert row["writer_job_id"] == second["job_id"]


async def test_m4_what_has_failed_at_one_writer_may_go_to_another_under_another_key(
    database_url, tmp_path
):
    failing, other = FakeWriter(statuses=["processing"]), FakeWriter()
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[failing, other]
    ) as house:
        [mission] = await under_way(house)
        async with working_until(house, lambda: named(house, mission, "writer_job_id")):
            assert other.log == []
            first = (await house.mission(mission))["writer_job_id"]
            await house.change("UPDATE ads_writers SET active = FALSE WHERE id = 'WRT-000001'")
            failing.statuses = ["failed"]
        row = await house.mission(mission)
        assert (row["status"], row["retry_count"]) == ("completed", 1)
        assert (len(failing.log), len(other.log)) == (1, 1)
        assert row["writer_job_id"] == other.log[0][1]["job_id"] != first


async def test_m1_who_has_the_ads_keeps_them_while_its_key_is_wrong(database_url, tmp_path):
    """A person sees to the key, and the same writer is asked on."""
    mine, other, locked = FakeWriter(), FakeWriter(), [True]

    def refuse(asked: Asked) -> bytes | None:
        wrong = locked[0] and asked.target.startswith("/status")
        return told(401, {"error": "x-api-key"}) if wrong else None

    mine.refuse = refuse
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[mine, other]
    ) as house:
        [mission] = await under_way(house)
        await house.drain()
        job = await parked(house)
        locked[0] = False
        await house.change(
            "UPDATE ads_writers SET last_test_ok = FALSE WHERE id = 'WRT-000001'"
        )
        await house.app.resume(job.id)
        await house.drain()

        assert (await house.mission(mission))["status"] == "completed"
        assert (len(mine.log), other.log) == (1, [])


async def test_the_healthy_and_least_loaded_one_comes_first(database_url, tmp_path):
    """§3.1.1; one that is away is only asked after its health where there is no other."""
    writers = [FakeWriter(), FakeWriter(), FakeWriter()]
    async with world(database_url, tmp_path, writers=writers) as house:
        first, second, third = house.writers

        async def chosen() -> tuple[str, bool] | None:
            return await (await house.app.database()).read(store.choose_writer)

        async def change(writer: str, what: str) -> None:
            await house.change(f"UPDATE ads_writers SET {what} WHERE id = '{writer}'")  # noqa: S608

        assert await chosen() == (first, False)
        await change(first, "last_test_ok = FALSE")
        assert await chosen() == (second, False)
        await house.add()
        await house.change(
            "UPDATE ads_missions SET status = 'running', checkpoint = 'armazenamento',"
            " writer_id = 'WRT-000002'"
        )
        assert await chosen() == (third, False)
        await house.app.write(lambda tx: store.writer_away(tx, third, "ERROR301"))
        assert await chosen() == (second, False)
        await change(second, "active = FALSE")
        assert await chosen() == (first, False)
        await change(first, "active = FALSE")
        assert await chosen() == (third, True)
        await change(third, "active = FALSE")
        assert await chosen() is None


async def test_without_a_writer_the_ads_wait_where_everybody_sees_it(database_url, tmp_path):
    writer = FakeWriter()
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        await house.change("UPDATE ads_writers SET active = FALSE")
        [mission] = await under_way(house)
        async with working_until(
            house, lambda: noted(house, store.STORAGE, "no writer is available")
        ):
            row = await house.mission(mission)
            assert (row["status"], row["checkpoint"]) == ("running", "armazenamento")
            await house.change("UPDATE ads_missions SET scraped_at = clock_in(-901)")
            assert await troubles(house) == ["no_writer"]
            await house.change("UPDATE ads_writers SET active = TRUE")
            assert await troubles(house) == []
        row = await house.mission(mission)
        assert (row["status"], row["retry_count"], len(writer.log)) == ("completed", 0, 1)
