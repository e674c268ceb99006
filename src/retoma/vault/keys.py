"""The keys that seal: from the environment, or from a file that nobody else can read.

A key's id is made of the key, so nobody has to name it. The first one seals; those behind it only
open what an earlier one had sealed, until everything is sealed anew.
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
    """Some keys by their ids; `current` seals."""

    current: str
    _keys: dict[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, raw: Sequence[bytes]) -> "Keys":
        keys = {key_id(each): each for each in raw}
        return cls(next(iter(keys)), keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, id_: str) -> bytes:
        return self._keys[id_]

    @property
    def text(self) -> str:
        """As a key file has them."""
        return "".join(f"{base64.b64encode(each).decode()}\n" for each in self._keys.values())

    def behind(self, new: bytes) -> "Keys":
        """These, and a new one that seals from now on."""
        return Keys.of([new, *self._keys.values()])

    def alone(self) -> "Keys":
        return Keys.of([self._keys[self.current]])


def key_id(key: bytes) -> str:
    return sha256(b"retoma secret key\0" + key).hexdigest()[:12]


def read_keys(text: str, where: str) -> Keys:
    """Each 32 bytes, as base64 or hexadecimal; what is wrong is never repeated."""
    words = [word for word in BETWEEN.split(text) if word]
    raw = [_key(word) for word in words]
    if not 1 <= len(raw) <= MOST or None in raw:
        raise BadInput(
            say(
                "{where} does not hold keys: each is 32 bytes in base64, as"
                " `openssl rand -base64 32` makes them; the first one seals",
                where=where,
            )
        )
    for each in words:
        Secret(each)  # known from now on, so that no log line shows it
    return Keys.of([each for each in raw if each is not None])


def _key(word: str) -> bytes | None:
    try:
        if len(word) == 2 * SIZE:
            return bytes.fromhex(word)
        raw = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == SIZE else None


class KeySource(Protocol):
    """Where keys come from."""

    def load(self) -> Keys | None:
        """What is there now; None where nothing is yet."""

    def make(self, ids: Ids) -> Keys:
        """The first key, or the one that somebody else made at the same moment."""

    def turn(self, ids: Ids) -> Keys:
        """A new current key; those there were stay behind it."""

    def drop(self, current: str, ids: Ids) -> None:
        """Nothing is sealed with any but `current` any more."""


class EnvKeys:
    """RETOMA_SECRET_KEY. Whoever set it turns and drops keys there."""

    def __init__(self, text: Secret) -> None:
        self._keys = read_keys(text.reveal(), "RETOMA_SECRET_KEY")

    def load(self) -> Keys | None:
        return self._keys

    def make(self, ids: Ids) -> Keys:  # noqa: ARG002 — as of any source
        return self._keys

    def turn(self, ids: Ids) -> Keys:  # noqa: ARG002 — likewise
        raise BadInput(
            say(
                "RETOMA_SECRET_KEY seals everything already: put a new key before the present"
                " one, separated by a comma, and rotate again"
            )
        )

    def drop(self, current: str, ids: Ids) -> None:
        """Nothing of ours."""


class KeyFile:
    """A file of keys, one in a line, readable by us alone."""

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
        self._refuse_wide(status)
        return read_keys(raw.decode("ascii", "replace"), str(self.path))

    def make(self, ids: Ids) -> Keys:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys = Keys.of([ids.unguessable(SIZE)])
        beside = self._written(keys, ids)
        try:
            # Whole or not at all, and only where nothing is: of two at once, one is first.
            with suppress(FileExistsError):
                os.link(beside, self.path)
        finally:
            beside.unlink()
        self._sync_folder()
        found = self.load()
        if found is None:
            raise Unreadable(say("the key file {path} was taken away", path=self.path))
        return found

    def turn(self, ids: Ids) -> Keys:
        keys = self.load()
        if keys is None:
            raise Unreadable(say("the key file {path} was taken away", path=self.path))
        return self._replace(keys.behind(ids.unguessable(SIZE)), ids)

    def drop(self, current: str, ids: Ids) -> None:
        keys = self.load()
        if keys is not None and keys.current == current and len(keys) > 1:
            self._replace(keys.alone(), ids)

    def _replace(self, keys: Keys, ids: Ids) -> Keys:
        self._written(keys, ids).replace(self.path)
        for left in self.path.parent.glob(f".{self.path.name}.*"):
            left.unlink(missing_ok=True)  # of somebody who was killed in the middle
        self._sync_folder()
        return keys

    def _written(self, keys: Keys, ids: Ids) -> Path:
        beside = self.path.with_name(f".{self.path.name}.{ids.new()}")
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w") as file:
            file.write(keys.text)
            file.flush()
            os.fsync(number)
        return beside

    def _sync_folder(self) -> None:
        number = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def _refuse_wide(self, status: os.stat_result) -> None:
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode) or mode & 0o077:
            raise Unreadable(
                say(
                    "others may read the key file {path} (mode {mode:04o}): `chmod 600` it, and"
                    " rotate if somebody has; nothing was opened",
                    path=self.path,
                    mode=mode,
                )
            )


def key_file(told: str | None, url: str, database: str) -> Path:
    """The one that the settings name, or the default."""
    return default_file(url, database) if told is None else Path(told)


def default_file(url: str, database: str) -> Path:
    """Beside the file of an embedded database; else in this user's data folder, one for each."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        if len(parts.path) <= 1:
            raise BadInput(
                say("a database in memory has no key file beside it: set RETOMA_SECRET_KEY")
            )
        return Path(f"{parts.path[1:]}.key")
    folder = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(folder) / "retoma" / f"{database}.key"
