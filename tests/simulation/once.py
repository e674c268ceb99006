"""Play one universe and print all that happened in it: `python -m tests.simulation.once SEED`.

Two processes in which strings hash differently must print the same, to the last digit.
"""

import json
import sys

from retoma.db import adhoc
from retoma.simulation.simulate import quiet, run_universe
from retoma.simulation.universe import make_file
from tests.simulation.world import scenario

EVENTS = adhoc(
    "SELECT e.job, e.seq, e.epoch, e.type, e.at, e.actor, coalesce(e.details ->> 'after', '')"
    " FROM events e ORDER BY e.job, e.seq"
)
JOBS = adhoc("SELECT id, kind, state, reason, epoch, generation, failures, lost FROM jobs")


def play(seed: int) -> dict[str, object]:
    """Its trace, its last instant, and every event and job that it left in its database."""
    with quiet():
        file = make_file(scenario().app)
        outcome = run_universe(scenario, seed, file=file)
        return {
            "violations": outcome.violations,
            "faults": outcome.faults,
            "trace": [repr(line) for line in outcome.trace],
            "ended": repr(outcome.virtual),
            "callbacks": outcome.callbacks,
            "events": file.read(lambda tx: tx.all(EVENTS)),
            "jobs": file.read(lambda tx: tx.all(JOBS)),
        }


if __name__ == "__main__":
    print(json.dumps(play(int(sys.argv[1]))))
