"""A runner on a host whose wall clock is wrong: as run_runner, with another time of day."""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.chaos import wall

if __name__ == "__main__":
    wall.hang(Path(os.environ[wall.VARIABLE]))
    from retoma.engine.checker import effect_ledger
    from tests.chaos import jobs, run_runner

    if not os.environ[jobs.URL].startswith("sqlite:"):
        setattr(effect_ledger, "database_clock", wall.true_database_clock)  # noqa: B010
    asyncio.run(run_runner.main(json.loads(sys.argv[1])))
