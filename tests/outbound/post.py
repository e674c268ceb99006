"""A small server of SMTP that speaks TLS, asks who it is, and keeps what it is given."""

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

USER, PASSWORD = "retoma", "CANARY-letters"


@dataclass(slots=True)
class Post:
    """Where it listens, what it was given, and who came in the open."""

    tls: ssl.SSLContext | None = None
    at_once: bool = False  # TLS from the first byte
    offers: bool = True  # STARTTLS
    login: bytes = b"235 welcome"  # the answer to the right password
    port: int = 0
    letters: list[EmailMessage] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # verbs, in the order they came
    open: list[bytes] = field(default_factory=list)  # lines that anybody could have read


class _Talk:
    """One who has come."""

    def __init__(self, post: Post, connection: socket.socket) -> None:
        self._post = post
        self._connection = connection
        self._is_private = False
        self._known = False
        if post.at_once:
            self._make_private()
        self._lines = self._connection.makefile("rb")

    def _make_private(self) -> None:
        assert self._post.tls is not None
        self._connection = self._post.tls.wrap_socket(self._connection, server_side=True)
        self._is_private = True

    def go_on(self) -> None:
        self._say(b"220 post")
        while line := self._lines.readline():
            verb = line.split()[0].upper().decode()
            self._post.asked.append(verb)
            if not self._is_private:
                self._post.open.append(line)
            if not self._heard(verb, line):
                break
        self._connection.close()

    def _heard(self, verb: str, line: bytes) -> bool:
        """Whether the talk goes on."""
        match verb:
            case "EHLO":
                self._say(*self._offered())
            case "STARTTLS":
                self._say(b"220 go on")
                self._make_private()
                self._lines = self._connection.makefile("rb")
            case "AUTH":
                self._say(self._answer_to(line.split()[2]))
            case "MAIL" if self._asks and not self._known:
                self._say(b"530 who is it?")
            case "DATA":
                self._say(b"354 go on")
                self._keep()
                self._say(b"250 kept")
            case "QUIT":
                self._say(b"221 bye")
                return False
            case _:
                self._say(b"250 ok")
        return True

    @property
    def _asks(self) -> bool:
        return self._post.tls is not None

    def _offered(self) -> list[bytes]:
        if self._is_private:
            return [b"250-post", b"250 AUTH PLAIN"]
        if self._asks and self._post.offers:
            return [b"250-post", b"250 STARTTLS"]
        return [b"250 post"]

    def _answer_to(self, given: bytes) -> bytes:
        if base64.b64decode(given) != f"\0{USER}\0{PASSWORD}".encode():
            return b"535 no: " + given  # as some do, which tell what they were told
        self._known = self._post.login.startswith(b"235")
        return self._post.login

    def _keep(self) -> None:
        raw = b""
        while (line := self._lines.readline()) not in (b".\r\n", b""):
            raw += line
        letter = message_from_bytes(raw, policy=policy.default)
        assert isinstance(letter, EmailMessage)
        self._post.letters.append(letter)

    def _say(self, *lines: bytes) -> None:
        self._connection.sendall(b"".join(line + b"\r\n" for line in lines))


@contextmanager
def posted(**how: Any) -> Iterator[Post]:
    """Until the block ends."""
    post = Post(**how)
    talks: list[threading.Thread] = []

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            _Talk(post, connection).go_on()

    def listen() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                connection.settimeout(30)
                talks.append(threading.Thread(target=talk, args=(connection,)))
                talks[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        post.port = listening.getsockname()[1]
        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield post
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for each in (thread, *talks):
                each.join(30)
