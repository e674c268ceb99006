"""References to secrets, stored as text. A reference never contains the plain secret."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from retoma.engine.rules.errors import BadInput, Permanent
from retoma.secret import STARS, Secret
from retoma.vault.files import read_small
from retoma.words import say

LONGEST: Final = 65_536  # characters of a secret: a chain of certificates fits
PATH: Final = 4_096  # characters
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
SEALED: Final = re.compile(
    r"v1:(?P<key>[0-9a-f]{12}):(?P<nonce>[A-Za-z0-9_-]{16}):(?P<sealed>[A-Za-z0-9_-]+)",
    re.ASCII,
)
# Secrets of retoma itself, which must not be sent to other services.
OURS: Final = frozenset(
    {"RETOMA_SECRET_KEY", "RETOMA_API_KEY", "RETOMA_DATABASE_URL", "DATABASE_URL"}
)


class Source(StrEnum):
    """Where a secret is stored."""

    ENV = "env"
    FILE = "file"
    SEALED = "enc"


class Unreadable(Permanent):
    """A secret is missing or cannot be decrypted: a person must fix it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="config")  # parks the job


@dataclass(frozen=True, slots=True)
class SecretRef:
    """`env:NAME`, `file:/path`, or `enc:…` as the vault encrypted it."""

    source: Source
    where: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "SecretRef":
        """Parse a reference. Errors do not show the text: it may be a secret in the wrong field."""
        start, _, where = text.partition(":")
        if start not in list(Source):
            raise BadInput(
                say("this is not a reference to a secret: write env:NAME or file:/path")
            )
        source = Source(start)
        _check(source, where)
        return cls(source, where)

    @property
    def text(self) -> str:
        """The stored form."""
        return f"{self.source}:{self.where}"

    def __repr__(self) -> str:
        return STARS

    __str__ = __repr__

    def read(self, environment: Mapping[str, str] = os.environ) -> Secret:
        """Read the secret from the environment or a file."""
        match self.source:
            case Source.ENV:
                plain = environment.get(self.where, "")
                if not plain:
                    raise Unreadable(
                        say(
                            "the environment variable {name} is not set: set it and restart",
                            name=self.where,
                        )
                    )
            case Source.FILE:
                plain = _contents(Path(self.where))
            case Source.SEALED:
                raise TypeError("only the vault decrypts encrypted secrets")
        return Secret(plain)


def parse_secret(text: str) -> SecretRef | Secret:
    """Parse the input of a secret field: a reference, or the secret itself."""
    start = text.partition(":")[0]
    if start == Source.SEALED:
        raise BadInput(
            say("an encrypted secret cannot be copied from elsewhere: enter the secret itself")
        )
    if start in (Source.ENV, Source.FILE):
        return SecretRef.parse(text)
    if not text or len(text) > LONGEST:
        raise BadInput(say("a secret must have 1 to {most} characters", most=LONGEST))
    if "\0" in text or not _encodable(text):
        raise BadInput(say("a secret must be text without NUL characters"))
    return Secret(text)


def _check(source: Source, where: str) -> None:
    match source:
        case Source.ENV:
            if not NAME.fullmatch(where) or where.upper() in OURS:
                raise BadInput(
                    say(
                        "env: needs the name of an environment variable that is not one of retoma's own"
                    )
                )
        case Source.FILE:
            path = Path(where)
            if not path.is_absolute() or not where.isprintable() or len(where) > PATH:
                raise BadInput(say("file: needs an absolute path"))
        case Source.SEALED:
            if not SEALED.fullmatch(where):
                raise BadInput(say("this is not a secret that a retoma vault encrypted"))


def _contents(path: Path) -> str:
    """Read a small regular file, without the newline at its end."""
    try:
        status, raw = read_small(path, LONGEST)
    except OSError as error:
        raise Unreadable(
            say("the file {path} cannot be read: {why}", path=path, why=error.strerror)
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(say("{path} is not a regular file", path=path))
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text or len(raw) > LONGEST:
        raise Unreadable(
            say(
                "{path} does not hold a secret of 1 to {most} bytes of text",
                path=path,
                most=LONGEST,
            )
        )
    return text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
