"""The world of ads that `retoma up` keeps going leaves to people what people have decided."""

from retoma.apps.ads.demo import start_unless_stopped
from tests.apps.ads.aids import World, world


async def wish(house: World) -> tuple[str, str]:
    [row] = await house.rows("SELECT wish, changed_by FROM ads_orchestrator")
    return str(row[0]), str(row[1])


async def test_what_a_person_has_stopped_stays_so(database_url, tmp_path):
    async with world(database_url, tmp_path) as house:
        await house.app.write(start_unless_stopped)
        assert await wish(house) == ("started", "demo")

        await house.stop()
        await house.app.write(start_unless_stopped)
        assert await wish(house) == ("stopped", "ana")

        await house.start()
        await house.app.write(start_unless_stopped)
        assert await wish(house) == ("started", "ana")
