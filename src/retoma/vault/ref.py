"""Where a secret lies: one text, whatever the place. It never holds the plain secret."""

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
# What opens this house itself is nobody's to send elsewhere.
OURS: Final = frozenset(
    {"RETOMA_SECRET_KEY", "RETOMA_API_KEY", "RETOMA_DATABASE_URL", "DATABASE_URL"}
)


class Source(StrEnum):
    """The places a secret may lie in."""

    ENV = "env"
    FILE = "file"
    SEALED = "enc"


class Unreadable(Permanent):
    """A secret is not where it was said to lie, or does not open: a person must put it right."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="config")  # a job that meets it is parked


@dataclass(frozen=True, slots=True)
class SecretRef:
    """`env:NAME`, `file:/path`, or `enc:…` as this house sealed it."""

    source: Source
    where: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "SecretRef":
        """Refuses what is none, without saying it: it may be a secret in the wrong field."""
        start, _, where = text.partition(":")
        if start not in list(Source):
            raise BadInput(say("this is no place of a secret: write env:NAME or file:/path"))
        source = Source(start)
        _check(source, where)
        return cls(source, where)

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.source}:{self.where}"

    def __repr__(self) -> str:
        return STARS

    __str__ = __repr__

    def read(self, environment: Mapping[str, str] = os.environ) -> Secret:
        """The secret itself, of the environment or a file."""
        match self.source:
            case Source.ENV:
                plain = environment.get(self.where, "")
                if not plain:
                    raise Unreadable(
                        say(
                            "the environment has no {name}: set it and start again",
                            name=self.where,
                        )
                    )
            case Source.FILE:
                plain = _contents(Path(self.where))
            case Source.SEALED:
                raise TypeError("what is sealed is opened by its vault")
        return Secret(plain)


def given(text: str) -> SecretRef | Secret:
    """What somebody wrote into a field for a secret: the place of one, or the secret itself."""
    start = text.partition(":")[0]
    if start == Source.SEALED:
        raise BadInput(
            say("what was sealed elsewhere does not open here: write the secret itself")
        )
    if start in (Source.ENV, Source.FILE):
        return SecretRef.parse(text)
    if not text or len(text) > LONGEST:
        raise BadInput(say("a secret has 1 to {most} characters", most=LONGEST))
    if "\0" in text or not _encodable(text):
        raise BadInput(say("a secret is text without a NUL"))
    return Secret(text)


def _check(source: Source, where: str) -> None:
    match source:
        case Source.ENV:
            if not NAME.fullmatch(where) or where.upper() in OURS:
                raise BadInput(
                    say("env: is followed by the name of a variable, and of none of our own")
                )
        case Source.FILE:
            path = Path(where)
            if not path.is_absolute() or not where.isprintable() or len(where) > PATH:
                raise BadInput(say("file: is followed by a path from the root on"))
        case Source.SEALED:
            if not SEALED.fullmatch(where):
                raise BadInput(say("this was not sealed by any vault of ours"))


def _contents(path: Path) -> str:
    """A small regular file, without the newline an editor leaves at its end."""
    try:
        status, raw = read_small(path, LONGEST)
    except OSError as error:
        raise Unreadable(
            say("the file {path} cannot be read: {why}", path=path, why=error.strerror)
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(say("{path} is no file", path=path))
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text or len(raw) > LONGEST:
        raise Unreadable(
            say("{path} holds no secret: 1 to {most} bytes of text", path=path, most=LONGEST)
        )
    return text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
