"""A loop that is wound up, and what is left when it is not."""

import faulthandler
import os

import structlog

from retoma.engine import held_loop
from retoma.engine.held_loop import LoopWatch
from tests.engine.aids import eventually


async def test_a_loop_that_goes_on_is_wound_up_again_and_leaves_nothing_behind(monkeypatch):
    """Nothing is really wound up: on a machine that pauses, it would end the tests."""
    wound: list[float] = []

    def wind(limit: float, *, exit: bool, file: object) -> None:  # noqa: A002 — as it is called
        wound.append(limit)

    async def again() -> bool:
        return len(wound) >= 3

    monkeypatch.setattr(faulthandler, "dump_traceback_later", wind)
    watch = LoopWatch("lively", 0.1)

    watch.start()
    there = held_loop._place("lively").exists()
    await eventually(again)
    watch.stop()

    assert {0.1} == set(wound)
    assert there
    assert "" == held_loop.stacks_of("lively")
    assert not held_loop._place("lively").exists()


async def test_a_loop_is_watched_where_the_folder_is_somebody_elses(tmp_path, monkeypatch):
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"retoma-loops-{os.getuid()}").touch()  # as little ours as another's folder
    watch = LoopWatch("ana", 60)

    with structlog.testing.capture_logs() as told:
        watch.start()
        watch.stop()

    assert ["runner.stacks_go_to_stderr"] == [line["event"] for line in told]
    assert "" == held_loop.stacks_of("ana")


async def test_a_limit_of_nothing_watches_nothing():
    watch = LoopWatch("unwatched", 0)

    watch.start()
    there = held_loop._place("unwatched").exists()
    watch.stop()

    assert not there


def test_what_a_boot_wrote_is_read_until_it_is_forgotten():
    with held_loop._place("written").open("w") as file:
        faulthandler.dump_traceback(file)

    told = held_loop.stacks_of("written")
    held_loop.forget("written")

    assert "in test_what_a_boot_wrote_is_read_until_it_is_forgotten" in told
    assert "" == held_loop.stacks_of("written")
    held_loop.forget("written")
