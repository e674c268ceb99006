"""The daily cleaning up and the times of a quote: what is old ends in ERROR, parked or not; its start is its first."""

from retoma.apps.quotes import APP
from retoma.sandbox.faults import Fault, FaultKind
from tests.apps.people import people
from tests.apps.quotes.aids import world

DAY = 24 * 3600


async def test_a_quote_that_has_been_parked_for_a_day_ends_in_error(
    database_url, tmp_path, test_clock
):
    """And the answer says so; one that was parked an hour ago still waits."""
    async with (
        world(database_url, tmp_path, told={"anthropic_key": None}) as there,
        people(there.app, APP, database_url) as who,
    ):
        old = await there.quote(2)
        await there.drained()
        test_clock.jump(DAY - 3600)
        young = await there.quote(3)
        await there.drained()
        test_clock.jump(2 * 3600)

        done = await who["operator"].post("/api/system/cleanup-old")
        await there.drained()

        assert {"cleaned": 1, "parked": 1, "quotes": [old]} == done.json()
        seen = await there.seen(old)
        assert ("ERROR", "deadline") == (seen["status"], seen["error_code"])
        assert "PROCESSING" == (await there.seen(young))["status"]
        again = await who["operator"].post("/api/system/cleanup-old")
        assert {"cleaned": 0, "parked": 0, "quotes": []} == again.json()


async def test_a_quote_began_when_it_was_claimed_first(database_url, tmp_path, test_clock):
    """Tried again an hour later it began at its first start, and took the whole time."""
    async with (
        world(database_url, tmp_path) as there,
        people(there.app, APP, database_url) as who,
    ):
        quote = await there.quote(2)
        faults = there.services.boxes["anthropic"]._faults
        faults.arm(Fault(trouble=FaultKind.STATUS, status=401))
        await there.drained()
        first = (await who["viewer"].get(f"/api/quotes/{quote}")).json()["started_at"]
        test_clock.jump(3600)
        await who["operator"].post(f"/api/system/recover-quote/{quote}")
        await there.drained()

        seen = (await who["viewer"].get(f"/api/quotes/{quote}")).json()
        assert ("DONE", first) == (seen["status"], seen["started_at"])
        assert seen["completed_at"] > first
