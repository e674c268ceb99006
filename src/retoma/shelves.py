"""Shelves for evidence: a folder, or a bucket of any service that speaks S3."""

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput, RetomaError
from retoma.engine.writing.evidence import Shelf, ShelfAway
from retoma.words import say

if TYPE_CHECKING:
    from retoma.outbound import Outbound, Policy

T = TypeVar("T")

DATABASE = "database"
PLACE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}\.[0-9A-Za-z-]{1,32}")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
TRIES = 3
PAUSE = 0.2  # seconds before the second try, four times as long before the third
TIMEOUT = 30.0  # seconds
MOST = 64 * 1024 * 1024  # bytes of one answer: twice the largest piece of evidence


def shelf_at(where: str, environment: Mapping[str, str] = os.environ) -> Shelf | None:
    """What a setting names; None is the database itself.

    `database`, `folder:///path`, or `s3://bucket/prefix?endpoint=https://…&region=…` with its
    keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    """
    if where == DATABASE:
        return None
    parts = urlsplit(where)
    if parts.scheme == "folder":
        return _folder(unquote(parts.path), elsewhere=bool(parts.netloc or parts.query))
    if parts.scheme == "s3":
        if "@" in where:
            raise BadInput(
                say("evidence: keys do not belong into an address; set them beside it")
            )
        return _bucket(
            parts.netloc, parts.path.strip("/"), dict(parse_qsl(parts.query)), environment
        )
    raise BadInput(
        say(
            "evidence lies in database, folder:///path or"
            " s3://bucket/prefix?endpoint=…, not in {place!r}",
            place=parts.scheme or "a place without a scheme",
        )
    )


def _folder(path: str, *, elsewhere: bool) -> "Folder":
    if elsewhere or not path.startswith("/") or ".." in path.split("/"):
        raise BadInput(
            say("evidence in a folder: write its whole path, as in folder:///var/evidence")
        )
    return Folder(Path(path))


def _bucket(
    name: str, prefix: str, said: Mapping[str, str], environment: Mapping[str, str]
) -> "Bucket":
    if not BUCKET.fullmatch(name):
        # Never what was said: it may be half of a secret that has a slash in it.
        raise BadInput(
            say("evidence: the name of a bucket has 3 to 63 of a to z, 0 to 9, dot, dash")
        )
    if unknown := set(said) - {"endpoint", "region"}:
        raise BadInput(
            say(
                "evidence in S3 is told an endpoint and a region, not {unknown}",
                unknown=sorted(unknown),
            )
        )
    keys = [environment.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")]
    if not all(keys):
        raise BadInput(
            say(
                "evidence in S3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                " in the environment"
            )
        )
    region = said.get("region") or environment.get("AWS_REGION") or "us-east-1"
    endpoint = said.get("endpoint") or f"https://s3.{region}.amazonaws.com"
    if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).netloc:
        raise BadInput(say("evidence: an endpoint is written as https://host:port"))
    credentials = Credentials(
        str(keys[0]), str(keys[1]), region, environment.get("AWS_SESSION_TOKEN")
    )
    return Bucket(name, f"{prefix}/" if prefix else "", endpoint.rstrip("/"), credentials)


class Folder:
    """Files that appear whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.base = f"folder://{quote(str(path).rstrip('/'))}/"
        self._path = path

    async def put(self, place: str, data: bytes, _: datetime) -> None:
        await self._beside(self._put, self._file(place), data)

    async def get(self, place: str, _: datetime) -> bytes | None:
        return await self._beside(_read, self._file(place))

    async def remove(self, place: str, _: datetime) -> None:
        await self._beside(_unlink, self._file(place))

    async def close(self) -> None:
        """Nothing is open."""

    def _file(self, place: str) -> Path:
        return self._path / _key(self.base, place)

    async def _beside(self, work: Callable[..., T], *args: Any) -> T:
        """In a thread: a disk may be slow, and a share away."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work, *args)
        except OSError as error:
            raise ShelfAway(f"{self.base}: {error.strerror or error}") from error

    def _put(self, file: Path, data: bytes) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A name of its own: two may put the same bytes at the same time.
        with NamedTemporaryFile(
            dir=file.parent, prefix=f"{file.name}.", suffix=".half", delete=False
        ) as written:
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
        Path(written.name).replace(file)
        _sync(file.parent)
        _sync(self._path)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are to a service that speaks S3. The secret is in no text made of it."""

    key: str
    secret: str = field(repr=False)
    region: str = "us-east-1"
    token: str | None = field(default=None, repr=False)


class Bucket:
    """Objects of a service that speaks S3, addressed by path, each request signed by us."""

    def __init__(self, name: str, prefix: str, endpoint: str, credentials: Credentials) -> None:
        self.base = f"s3://{name}/{prefix}"
        self._path = f"/{name}/{quote(prefix)}"
        self._endpoint = endpoint
        self._host = _host(endpoint)
        self._credentials = credentials
        self._clock = Clock()
        self._way: tuple[Outbound, Policy] | None = None

    async def put(self, place: str, data: bytes, at: datetime) -> None:
        await self._asked("PUT", place, at, data)

    async def get(self, place: str, at: datetime) -> bytes | None:
        return await self._asked("GET", place, at)

    async def remove(self, place: str, at: datetime) -> None:
        await self._asked("DELETE", place, at)

    async def close(self) -> None:
        if self._way is not None:
            await self._way[0].close()

    async def _asked(
        self, method: str, place: str, at: datetime, data: bytes = b""
    ) -> bytes | None:
        """The answer; None where there is nothing at that place. Asked again if it may help."""
        pause, said = PAUSE, ""
        for attempt in range(TRIES):
            if attempt:
                await self._clock.sleep(pause)
                pause *= 4
            status, said, content = await self._once(method, place, at, data)
            if status < 300:
                return content
            if status == 404:
                return None
            if status < 500 and status != 429:
                break
        raise ShelfAway(f"{method} {place}: {said}")

    async def _once(
        self, method: str, place: str, at: datetime, data: bytes
    ) -> tuple[int, str, bytes]:
        """Status (599: no answer at all), what to tell of it, and the content."""
        path = self._path + _key(self.base, place)
        headers = signed(self._credentials, method, self._host, path, data, at)
        del headers["host"]  # signed as it will be sent, by whoever sends it
        try:
            out, policy = self._way_out()
            answer = await out.request(
                policy,
                method,
                f"{self._endpoint}{path}",
                headers=headers,
                content=data,
                accept=range(600),
            )
        except RetomaError as error:
            return 599, f"no answer ({error})", b""
        return answer.status, f"answered {answer.status}", answer.body

    def _way_out(self) -> "tuple[Outbound, Policy]":
        # Only who keeps evidence in S3 pays for a client.
        from retoma.outbound import Outbound, Policy  # noqa: PLC0415

        if self._way is None:
            # The endpoint is the operator's own setting: it may well stand in their own network.
            policy = Policy.toward(
                "evidence",
                self._endpoint,
                private=True,
                deadline=TIMEOUT,
                most_bytes=MOST,
                most_unpacked=MOST,
            )
            self._way = Outbound(), policy
        return self._way


def signed(
    who: Credentials,
    method: str,
    host: str,
    path: str,
    data: bytes,
    at: datetime,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The headers of a request under AWS Signature Version 4; `path` is quoted already."""
    stamp = f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    digest = hashlib.sha256(data).hexdigest()
    sent = {
        **{name.lower(): value.strip() for name, value in headers.items()},
        "host": host,
        "x-amz-content-sha256": digest,
        "x-amz-date": stamp,
    }
    if who.token is not None:
        sent["x-amz-security-token"] = who.token
    names = ";".join(sorted(sent))
    lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
    asked = f"{method}\n{path}\n\n{lines}\n{names}\n{digest}"
    scope = f"{stamp[:8]}/{who.region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{who.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    sent["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={who.key}/{scope},SignedHeaders={names},"
        f"Signature={signature}"
    )
    return sent


def _host(endpoint: str) -> str:
    """As a request says it: without a port that goes without saying."""
    parts = urlsplit(endpoint)
    return parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")


def _key(base: str, place: str) -> str:
    """What follows the shelf's own name, if it is a place of ours and leads nowhere else."""
    key = place.removeprefix(base)
    if not place.startswith(base) or not PLACE.fullmatch(key):
        raise ShelfAway(f"{place} is no place on the shelf {base}")
    return key


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _unlink(file: Path) -> None:
    file.unlink(missing_ok=True)
    for half in file.parent.glob(f"{file.name}.*.half"):  # of somebody who died at it
        half.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """A file that is renamed is there after a power cut only if its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
