"""`python -m tests.services VARIABLE command …`: run it with a private PostgreSQL's address in VARIABLE."""

import os
import signal
import subprocess
import sys

from tests.services.postgres import DURABLE, PostgresServer


def main(variable: str, *command: str) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the server goes too
    with PostgresServer(DURABLE) as server:
        return subprocess.run(
            command, env=os.environ | {variable: server.dsn}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
