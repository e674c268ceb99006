"""For tests of your own stories: `from retoma.testing import FakeClock, crash_at, drain`.

A clock in hand, a runner that leaves when nothing is left, a crash on demand. docs/howto/tests.md
shows them at work.
"""

from retoma.db.crashpoint import Harm, Injected
from retoma.engine.testing import FakeClock, crash_at, drain

__all__ = ["FakeClock", "Harm", "Injected", "crash_at", "drain"]
