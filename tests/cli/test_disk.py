"""`retoma db size`: what takes how much room, and what retention last deleted."""

import json

from retoma import Retoma
from tests.cli.conftest import with_app


def test_it_says_what_takes_how_much_and_when_retention_last_passed(worked, verb):
    before = verb("db", "size").out

    async def retire(app: Retoma) -> None:
        await app.retention.run_once(done=0.000001)

    with_app(worked, retire)
    told = json.loads(verb("db", "size", "--json").out)

    assert "retention has not passed yet" in before
    assert told["database"] > 0
    assert told["file"].endswith("work.db")
    assert 4 == told["last_pass"]["retired"]["jobs"]
    assert "jobs 4" in verb("db", "size").out
