"""E1 E3 E4 E9 E10 E11 E13 E19: the store against a reference of a few dicts, by chance, on both databases."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from retoma import db
from retoma.db import migrations
from retoma.engine.rules.job import Held
from tests.model.machine import Hand, Machine

QUIET = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}
GATE = settings(max_examples=60, stateful_step_count=40, **QUIET)  # type: ignore[arg-type]
SOAK = settings(max_examples=300, stateful_step_count=60, **QUIET)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(GATE, id="gate"),
        pytest.param(SOAK, id="soak", marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_whatever_is_asked_the_store_does_what_the_reference_does(database_url, size):
    hand = Hand()
    database = db.open(slack(database_url), moved=hand.moved)
    await migrations.upgrade(database)
    await database.write(lambda tx: tx.run(db.MOVABLE_CLOCK), verb="test")

    class OnThis(Machine):
        pass

    OnThis.database, OnThis.clock = database, hand
    try:
        run_state_machine_as_test(OnThis, settings=size)
    finally:
        database.close()


def slack(url: str) -> str:
    """Thousands of small commits: what a power cut would take is not what is tried here."""
    return f"{url}?synchronous=normal" if url.startswith("sqlite:") else url


async def test_a_store_without_a_fence_would_be_found_out(tmp_path):
    """The machine can fail: a settling that says what the fence wants to hear is seen."""
    hand = Hand()
    database = db.open(slack(f"sqlite:///{tmp_path / 'work.db'}"), moved=hand.moved)
    await migrations.upgrade(database)

    class Careless(Machine):
        def sent(self, boot: str, held: Held) -> tuple[str, Held]:
            job = self.model.jobs[held.job]
            return job.runner or boot, Held(job.id, job.epoch)

    Careless.database, Careless.clock = database, hand
    try:
        with pytest.raises(AssertionError):
            run_state_machine_as_test(
                Careless, settings=settings(SOAK, phases=[Phase.generate])
            )
    finally:
        database.close()
