"""A small server that speaks as much S3 as evidence needs, and believes nobody without a signature."""

import hashlib
import hmac
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

ACCESS = "AKIDEXAMPLE"
SECRET = "canary/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105 — of nobody
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<who>[^/]+)/(?P<scope>(?P<day>\d{8})/(?P<region>[^/]+)/s3/"
    r"aws4_request), ?SignedHeaders=(?P<names>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


class S3(ThreadingHTTPServer):
    """Objects by their path. `ill`: how many of the next requests are answered 503."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.asked: list[tuple[str, str, int]] = []
        self.ill = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One request at a time; every answer is told in `asked`."""

    server: S3
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self._welcome(body):
            self.server.objects[self.path] = body
            self._answer(200)

    def do_GET(self) -> None:
        if self._welcome(b""):
            found = self.server.objects.get(self.path)
            self._answer(404 if found is None else 200, found or b"")

    def do_DELETE(self) -> None:
        if self._welcome(b""):
            self.server.objects.pop(self.path, None)
            self._answer(204)

    def _welcome(self, body: bytes) -> bool:
        if self.server.ill:
            self.server.ill -= 1
            self._answer(503)
            return False
        if not self._signed(body):
            self._answer(403)
            return False
        return True

    def _signed(self, body: bytes) -> bool:
        """As the service's own manual tells it, from what arrived, not from what was meant."""
        said = AUTHORIZATION.fullmatch(self.headers.get("authorization", ""))
        digest = hashlib.sha256(body).hexdigest()
        if said is None or self.headers.get("x-amz-content-sha256") != digest:
            return False
        stamp = self.headers.get("x-amz-date", "")
        names = said["names"].split(";")
        if {"host", "x-amz-content-sha256", "x-amz-date"} - set(names):
            return False
        canonical = [self.command, self.path, ""]
        canonical += [f"{name}:{self.headers[name].strip()}" for name in names]
        canonical += ["", said["names"], digest]
        asked = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
        to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, said["scope"], asked])
        key = hmac.new(f"AWS4{SECRET}".encode(), said["day"].encode(), hashlib.sha256).digest()
        for part in (said["region"], "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        wanted = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        return (
            said["who"] == ACCESS
            and stamp.startswith(said["day"])
            and hmac.compare_digest(wanted, said["signature"])
        )

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.server.asked.append((self.command, self.path, status))
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """`asked` tells enough."""


@contextmanager
def serving() -> Iterator[S3]:
    with S3() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
