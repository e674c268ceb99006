"""Play universes until one is violated: `python -m tests.mutants.universes SCENARIO SEED MOST`."""

import importlib
import json
import sys

from retoma.simulation.simulate import quiet, run_universe
from retoma.simulation.universe import make_file
from tests.mutants.witness import check_tree

PART = 20


def main(where: str, first: int, most: int) -> dict[str, object]:
    check_tree()
    module, _, name = where.partition(":")
    scenario = getattr(importlib.import_module(module), name)
    with quiet():
        file = make_file(scenario().app)
        for played in range(1, most + 1):
            outcome = run_universe(scenario, first + played - 1, file=file)
            if outcome.violations:
                break
            if played % PART == 0:
                print(
                    f"{played} universes", flush=True
                )  # who waits for us waits while we say so
    return {"seed": outcome.seed, "played": played, "violations": outcome.violations}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
