"""Encryption keys of secrets: from the environment, or from a file that only its owner can read.

A key's id is a hash of the key. The first key encrypts; the others only decrypt what they encrypted
earlier, until a rotation has encrypted everything with the first one.
"""

import base64
import binascii
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from retoma.engine.ports import Ids
from retoma.engine.rules.errors import BadInput
from retoma.secret import Secret
from retoma.vault.files import read_small
from retoma.vault.ref import Unreadable
from retoma.words import say

SIZE: Final = 32  # bytes: AES-256
MOST: Final = 16  # keys at a time
FILE: Final = 65_536  # bytes of a key file that are read
BETWEEN: Final = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by their ids; the key with the id `current` encrypts."""

    current: str
    _keys: dict[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, raw: Sequence[bytes]) -> "Keys":
        keys = {key_id(key): key for key in raw}
        return cls(next(iter(keys)), keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, id_: str) -> bytes:
        return self._keys[id_]

    @property
    def text(self) -> str:
        """The content of a key file with these keys."""
        return "".join(f"{base64.b64encode(key).decode()}\n" for key in self._keys.values())

    def with_current(self, new: bytes) -> "Keys":
        """Return these keys with a new current key."""
        return Keys.of([new, *self._keys.values()])

    def only_current(self) -> "Keys":
        return Keys.of([self._keys[self.current]])


def key_id(key: bytes) -> str:
    return sha256(b"retoma secret key\0" + key).hexdigest()[:12]


def read_keys(text: str, where: str) -> Keys:
    """Parse keys of 32 bytes each, in base64 or hexadecimal. Errors do not repeat the text."""
    words = [word for word in BETWEEN.split(text) if word]
    raw = [_key(word) for word in words]
    if not 1 <= len(raw) <= MOST or None in raw:
        raise BadInput(
            say(
                "{where} holds no valid keys: each key is 32 bytes in base64, as"
                " `openssl rand -base64 32` prints; the first key encrypts",
                where=where,
            )
        )
    for word in words:
        Secret(word)  # registers the key with redaction, so that no log line shows it
    return Keys.of([key for key in raw if key is not None])


def _key(word: str) -> bytes | None:
    try:
        if len(word) == 2 * SIZE:
            return bytes.fromhex(word)
        raw = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == SIZE else None


class KeySource(Protocol):
    """Loads, makes and rotates keys."""

    def load(self) -> Keys | None:
        """Load the keys; None if there are none yet."""

    def make(self, ids: Ids) -> Keys:
        """Make the first key, or load the one that another process made at the same time."""

    def rotate(self, ids: Ids) -> Keys:
        """Add a new current key and keep the others."""

    def drop(self, current: str, ids: Ids) -> None:
        """Drop all keys but `current`, which now encrypts every secret."""


class EnvKeys:
    """Keys of RETOMA_SECRET_KEY. The operator adds and removes keys there."""

    def __init__(self, text: Secret) -> None:
        self._keys = read_keys(text.reveal(), "RETOMA_SECRET_KEY")

    def load(self) -> Keys | None:
        return self._keys

    def make(self, ids: Ids) -> Keys:  # noqa: ARG002 — the signature of KeySource
        return self._keys

    def rotate(self, ids: Ids) -> Keys:  # noqa: ARG002 — likewise
        raise BadInput(
            say(
                "RETOMA_SECRET_KEY has no new key to rotate to: put a new key before the current"
                " one, separated by a comma, and rotate again"
            )
        )

    def drop(self, current: str, ids: Ids) -> None:
        """Do nothing: the operator removes old keys."""


class KeyFile:
    """A file with one key per line, readable only by its owner."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Keys | None:
        try:
            status, raw = read_small(self.path, FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreadable(
                say("the key file {path}: {why}", path=self.path, why=error.strerror)
            ) from None
        self._check_mode(status)
        return read_keys(raw.decode("ascii", "replace"), str(self.path))

    def make(self, ids: Ids) -> Keys:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys = Keys.of([ids.unguessable(SIZE)])
        temp = self._write_temp(keys, ids)
        try:
            # The link fails if the file exists, so of two processes at once only one makes the key.
            with suppress(FileExistsError):
                os.link(temp, self.path)
        finally:
            temp.unlink()
        self._sync_folder()
        loaded = self.load()
        if loaded is None:
            raise Unreadable(say("the key file {path} was removed", path=self.path))
        return loaded

    def rotate(self, ids: Ids) -> Keys:
        keys = self.load()
        if keys is None:
            raise Unreadable(say("the key file {path} was removed", path=self.path))
        return self._replace(keys.with_current(ids.unguessable(SIZE)), ids)

    def drop(self, current: str, ids: Ids) -> None:
        keys = self.load()
        if keys is not None and keys.current == current and len(keys) > 1:
            self._replace(keys.only_current(), ids)

    def _replace(self, keys: Keys, ids: Ids) -> Keys:
        self._write_temp(keys, ids).replace(self.path)
        for left in self.path.parent.glob(f".{self.path.name}.*"):
            left.unlink(missing_ok=True)  # left by a process that was killed
        self._sync_folder()
        return keys

    def _write_temp(self, keys: Keys, ids: Ids) -> Path:
        temp = self.path.with_name(f".{self.path.name}.{ids.new()}")
        number = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w") as file:
            file.write(keys.text)
            file.flush()
            os.fsync(number)
        return temp

    def _sync_folder(self) -> None:
        number = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def _check_mode(self, status: os.stat_result) -> None:
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode) or mode & 0o077:
            raise Unreadable(
                say(
                    "other users may read the key file {path} (mode {mode:04o}): run `chmod 600` on it,"
                    " and rotate the key if somebody has read it; no secret was decrypted",
                    path=self.path,
                    mode=mode,
                )
            )


def key_file(setting: str | None, url: str, database: str) -> Path:
    """Return the key file that the setting names, or the default one."""
    return default_file(url, database) if setting is None else Path(setting)


def default_file(url: str, database: str) -> Path:
    """Return the default key file: beside an SQLite file, else in the user's data folder, one per database."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        if len(parts.path) <= 1:
            raise BadInput(say("a database in memory has no key file: set RETOMA_SECRET_KEY"))
        return Path(f"{parts.path[1:]}.key")
    folder = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(folder) / "retoma" / f"{database}.key"
