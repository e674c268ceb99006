"""A forward proxy with basic authentication that names itself to the site. Built on proxy.py."""

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
    "RETOMA_SANDBOX_PROXY"  # user:password; not an argument, which other users could see
)
NAME: Final = "RETOMA_SANDBOX_PROXY_NAME"
HERE: Final = "127.0.0.1"


class Introduced(HttpProxyBasePlugin):
    """Adds the proxy's name to each request."""

    def handle_client_request(self, request: HttpParser) -> HttpParser:
        request.add_header(b"Forwarded", f"by=_{os.environ[NAME]}".encode())
        return request


def _leave_no_child() -> None:
    """End child processes when this process ends: each child watches a pipe that closes then."""
    ours, theirs = os.pipe()

    def watch() -> None:
        os.close(theirs)

        def wait() -> None:
            os.read(ours, 1)  # returns when the parent process is gone
            os._exit(0)

        threading.Thread(target=wait, daemon=True).start()

    os.register_at_fork(after_in_child=watch)


def run(name: str, port: int, listening: Callable[[int], None], *, with_parent: bool) -> None:
    """Run the proxy until the process is stopped. The credentials are in the environment."""
    os.environ[NAME] = name
    _leave_no_child()
    arguments = ["--hostname", HERE, "--port", str(port), "--log-level", "ERROR"]
    arguments += ["--num-workers", "1", "--num-acceptors", "1"]
    arguments += ["--basic-auth", os.environ.pop(CREDENTIALS)]
    folder = TemporaryDirectory(prefix="retoma-proxy-", dir=scratch())
    with folder as data:  # by default it writes to the home folder
        arguments += ["--data-dir", data, "--cache-dir", data]
        with proxy.Proxy(arguments, plugins=[Introduced]) as running:
            listening(running.flags.port)
            if with_parent:
                sys.stdin.buffer.read()  # ends when the parent process is gone
            else:
                sleep_loop(running)
