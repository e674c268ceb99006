"""For tests of your own stories: `from retoma.testing import FakeClock, crash_at, drain`.

A clock in hand, a runner that leaves when nothing is left, a crash on demand: docs/howto/tests.md. Whole
universes of runners and faults, decided by a seed: docs/howto/simulate.md.
"""

from retoma.db.crashpoint import Harm, Injected
from retoma.engine.testing import FakeClock, crash_at, drain
from retoma.simulation import Faults, Scenario, SimulatedLedger, Violated, simulate

__all__ = [
    "FakeClock",
    "Faults",
    "Harm",
    "Injected",
    "Scenario",
    "SimulatedLedger",
    "Violated",
    "crash_at",
    "drain",
    "simulate",
]
