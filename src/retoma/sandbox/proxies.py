"""A real forward proxy that asks for a name and a password, and tells a site who it is.

proxy.py does the work.
"""

import os
import sys
import threading
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Final

import proxy
from proxy.http.parser import HttpParser
from proxy.http.proxy import HttpProxyBasePlugin
from proxy.proxy import sleep_loop

from retoma.engine.isolation.scratch import scratch

CREDENTIALS: Final = (
    "RETOMA_SANDBOX_PROXY"  # user:password; never an argument, which all can see
)
NAME: Final = "RETOMA_SANDBOX_PROXY_NAME"
HERE: Final = "127.0.0.1"


class Introduced(HttpProxyBasePlugin):
    """Writes into each request through which proxy it came."""

    def handle_client_request(self, request: HttpParser) -> HttpParser:
        request.add_header(b"Forwarded", f"by=_{os.environ[NAME]}".encode())
        return request


def _leave_no_child() -> None:
    """A child of ours ends with us, however we end: its end of a pipe says so."""
    ours, theirs = os.pipe()

    def watch() -> None:
        os.close(theirs)

        def wait() -> None:
            os.read(ours, 1)  # nobody writes: it ends when whoever forked us is gone
            os._exit(0)

        threading.Thread(target=wait, daemon=True).start()

    os.register_at_fork(after_in_child=watch)


def run(name: str, port: int, listening: Callable[[int], None], *, with_parent: bool) -> None:
    """Until told to stop. The credentials are in the environment."""
    os.environ[NAME] = name
    _leave_no_child()
    arguments = ["--hostname", HERE, "--port", str(port), "--log-level", "ERROR"]
    arguments += ["--num-workers", "1", "--num-acceptors", "1"]
    arguments += ["--basic-auth", os.environ.pop(CREDENTIALS)]
    folder = TemporaryDirectory(prefix="retoma-proxy-", dir=scratch())
    with folder as data:  # else it litters the home folder
        arguments += ["--data-dir", data, "--cache-dir", data]
        with proxy.Proxy(arguments, plugins=[Introduced]) as running:
            listening(running.flags.port)
            if with_parent:
                sys.stdin.buffer.read()  # ends when whoever started us is gone
            else:
                sleep_loop(running)
