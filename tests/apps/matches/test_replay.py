"""After a layout has changed: what was kept is read again, and nothing is asked of the site for it."""

from retoma.apps.matches import store
from retoma.apps.matches.sandbox import Layout, Odd
from retoma.apps.matches.service.replays import FIRST, Place, Replay, Which
from retoma.apps.matches.store.runs import watch
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, house, stored_as
from tests.apps.matches.test_rounds import refs


async def test_dead_letters_are_read_again_and_promoted_without_a_request(database_url):
    """R1 R3 R4: shown first, and nothing is changed; then stored, whole, and the round is complete."""
    async with house(database_url) as there:
        bad, *others = there.truth()
        run, _ = await there.start()
        await there.app.write(lambda tx: store.runs.discovered(tx, run, refs(there)))
        there.site.world.draw(Layout.MODERN)
        there.site.world.make_odd(LEAGUE, bad.key, Odd.SCORE_100)
        await there.drained()
        tasks = await there.tasks(run)
        assert {"LAYOUT_CHANGED"} == {each["error_code"] for each in tasks.values()}
        [(alert, told)] = [
            each
            for each in (await (await there.app.database()).read(watch)).items()
            if each[1]["pages"] == 10
        ]
        assert alert.startswith(f"LayoutChanged {LEAGUE} ")
        assert LEAGUE in told["text"]

        asked = there.asked()
        shown = await there.replayed("LAYOUT_CHANGED", layouts="modern,classic")
        of_tasks = {each.key: each for each in shown if each.what == "task"}
        assert {"stored"} == {of_tasks[match.key].change for match in others}
        assert ("refused", "score.home") == (
            of_tasks[bad.key].change,
            of_tasks[bad.key].after["path"],
        )
        assert others[0].plain()["score"] == of_tasks[others[0].key].after["score"]
        assert {} == await there.matches()
        assert ["refused"] * 10 == [
            each.change for each in await there.replayed("LAYOUT_CHANGED") if each.key
        ]
        assert [] == await there.replayed("SCHEMA_INVALID")

        await there.app.knobs.set("matches.layouts", "modern,classic", actor=WHO)
        done = await there.replayed("LAYOUT_CHANGED", apply=True)
        assert 9 == sum(each.promoted for each in done if each.what == "task")
        assert {"DONE": 9, "FAILED": 1} == await there.statuses(run)
        assert [] == await there.rows(PARTIAL)
        stored = await there.matches()
        for match in others:
            stored_as(match, stored[match.key])
        assert not (await there.seen(run))["complete"]
        assert asked == there.asked()

        there.site.world.make_odd(LEAGUE, bad.key, None)
        await there.app.write(lambda tx: store.runs.retry_failed(tx, actor=WHO))
        await there.drained()
        assert (await there.seen(run))["complete"]
        assert [] == await there.replayed()


async def test_a_rounds_page_is_read_again_too(database_url):
    """Its matches, which nobody has asked for yet, are looked for from then on."""
    async with house(database_url) as there:
        there.site.world.draw(Layout.MODERN)
        run = await there.scraped()
        assert "FAILED" == (await there.seen(run))["status"]
        await there.app.knobs.set("matches.layouts", "modern,classic", actor=WHO)

        [shown] = await there.replayed("LAYOUT_CHANGED", apply=True)
        assert ("round", "discovered", True) == (shown.what, shown.change, shown.promoted)
        await there.drained()
        assert (await there.seen(run))["complete"]
        assert 1 == there.asked()[f"/{LEAGUE}/2026/rodada/1"]


async def test_pages_are_read_a_bite_at_a_time_each_once(database_url):
    """However many were refused, nobody waits for all of them; those of rounds come first."""
    async with house(database_url) as there:
        run, _ = await there.start()
        await there.app.write(lambda tx: store.runs.discovered(tx, run, refs(there)))
        there.site.world.draw(Layout.MODERN)
        other, _ = await there.start(2)
        await there.drained()
        tasks = sorted(each["id"] for each in (await there.tasks(run)).values())
        replay = Replay(there.app, there.settings.matches_url)

        sizes, read = [], []
        place: Place | None = FIRST
        while place is not None:
            some, place = await replay.bite(Which(), place, 4, apply=False, actor=WHO)
            sizes.append(len(some))
            read += [(each.what, each.id) for each in some]

        rounds = [("round", run), ("round", other)]
        assert [*rounds, *(("task", id_) for id_ in tasks)] == read
        assert [4, 4, 4, 0] == sizes
        assert 12 == await replay.count(Which())
        assert (1, 10) == (
            await replay.count(Which(task=tasks[3])),
            await replay.count(Which(run=run)) - 1,
        )


async def test_a_page_whose_bytes_are_gone_is_told_of(database_url):
    async with house(database_url) as there:
        bad, *_ = there.truth()
        there.site.world.make_odd(LEAGUE, bad.key, Odd.SCORE_100)
        run = await there.scraped()
        task = (await there.tasks(run))[bad.key]["id"]
        await there.app.write(
            lambda tx: store.tasks.note(tx, task, None, '{"code":"x"}', "0" * 64)
        )

        [shown] = await there.replayed(apply=True, task=task)
        assert ("lost", False) == (shown.change, shown.promoted)
        assert {"DONE": 9, "FAILED": 1} == await there.statuses(run)
