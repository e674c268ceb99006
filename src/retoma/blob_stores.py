"""Blob stores for evidence: a folder, or a bucket of any S3-compatible service."""

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


def open_blob_store(where: str, environment: Mapping[str, str] = os.environ) -> Shelf | None:
    """Open the blob store of the evidence setting; None for the database itself.

    `database`, `folder:///path`, or `s3://bucket/prefix?endpoint=https://…&region=…` with its
    keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    """
    if where == DATABASE:
        return None
    parts = urlsplit(where)
    if parts.scheme == "folder":
        return _folder(unquote(parts.path), extra_parts=bool(parts.netloc or parts.query))
    if parts.scheme == "s3":
        if "@" in where:
            raise BadInput(
                say("evidence: the URL must not contain keys; set them in the environment")
            )
        return _bucket(
            parts.netloc, parts.path.strip("/"), dict(parse_qsl(parts.query)), environment
        )
    raise BadInput(
        say(
            "evidence can be stored in database, folder:///path or"
            " s3://bucket/prefix?endpoint=…, not in {place!r}",
            place=parts.scheme or "a URL without a scheme",
        )
    )


def _folder(path: str, *, extra_parts: bool) -> "Folder":
    if extra_parts or not path.startswith("/") or ".." in path.split("/"):
        raise BadInput(
            say("evidence in a folder needs an absolute path, such as folder:///var/evidence")
        )
    return Folder(Path(path))


def _bucket(
    name: str, prefix: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> "Bucket":
    if not BUCKET.fullmatch(name):
        # Do not show the text: it may be part of a secret with a slash in it.
        raise BadInput(
            say(
                "evidence: a bucket name must have 3 to 63 characters of a to z, 0 to 9, dot, dash"
            )
        )
    if unknown := set(options) - {"endpoint", "region"}:
        raise BadInput(
            say(
                "evidence in S3 takes only the options endpoint and region, not {unknown}",
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
    region = options.get("region") or environment.get("AWS_REGION") or "us-east-1"
    endpoint = options.get("endpoint") or f"https://s3.{region}.amazonaws.com"
    if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).netloc:
        raise BadInput(say("evidence: the endpoint must be a URL such as https://host:port"))
    credentials = Credentials(
        str(keys[0]), str(keys[1]), region, environment.get("AWS_SESSION_TOKEN")
    )
    return Bucket(name, f"{prefix}/" if prefix else "", endpoint.rstrip("/"), credentials)


class Folder:
    """A folder of files, each written atomically."""

    def __init__(self, path: Path) -> None:
        self.base = f"folder://{quote(str(path).rstrip('/'))}/"
        self._path = path

    async def put(self, place: str, data: bytes, _: datetime) -> None:
        await self._in_thread(self._put, self._file(place), data)

    async def get(self, place: str, _: datetime) -> bytes | None:
        return await self._in_thread(_read, self._file(place))

    async def remove(self, place: str, _: datetime) -> None:
        await self._in_thread(_unlink, self._file(place))

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _file(self, place: str) -> Path:
        return self._path / _key(self.base, place)

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run file access in a thread: a disk or a network share may be slow."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work, *args)
        except OSError as error:
            raise ShelfAway(f"{self.base}: {error.strerror or error}") from error

    def _put(self, file: Path, data: bytes) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A unique name, because two processes may write the same content at once.
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
    """Credentials of an S3-compatible service. The repr does not show the secret."""

    key: str
    secret: str = field(repr=False)
    region: str = "us-east-1"
    token: str | None = field(default=None, repr=False)


class Bucket:
    """Objects in an S3-compatible bucket, with path-style addresses and signed requests."""

    def __init__(self, name: str, prefix: str, endpoint: str, credentials: Credentials) -> None:
        self.base = f"s3://{name}/{prefix}"
        self._path = f"/{name}/{quote(prefix)}"
        self._endpoint = endpoint
        self._host = _host(endpoint)
        self._credentials = credentials
        self._clock = Clock()
        self._client_and_policy: tuple[Outbound, Policy] | None = None

    async def put(self, place: str, data: bytes, at: datetime) -> None:
        await self._request("PUT", place, at, data)

    async def get(self, place: str, at: datetime) -> bytes | None:
        return await self._request("GET", place, at)

    async def remove(self, place: str, at: datetime) -> None:
        await self._request("DELETE", place, at)

    async def close(self) -> None:
        if self._client_and_policy is not None:
            await self._client_and_policy[0].close()

    async def _request(
        self, method: str, place: str, at: datetime, data: bytes = b""
    ) -> bytes | None:
        """Send a request, with retries. Returns the content; None if the object does not exist."""
        pause, summary = PAUSE, ""
        for attempt in range(TRIES):
            if attempt:
                await self._clock.sleep(pause)
                pause *= 4
            status, summary, content = await self._once(method, place, at, data)
            if status < 300:
                return content
            if status == 404:
                return None
            if status < 500 and status != 429:
                break
        raise ShelfAway(f"{method} {place}: {summary}")

    async def _once(
        self, method: str, place: str, at: datetime, data: bytes
    ) -> tuple[int, str, bytes]:
        """Send a request once. Returns the status (599: no answer), a summary for errors, and the content."""
        path = self._path + _key(self.base, place)
        headers = sign_request(self._credentials, method, self._host, path, data, at)
        del headers["host"]  # the client sets it, as it was signed
        try:
            out, policy = self._client()
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

    def _client(self) -> "tuple[Outbound, Policy]":
        # Imported here, so that only evidence in S3 loads the HTTP client.
        from retoma.outbound import Outbound, Policy  # noqa: PLC0415

        if self._client_and_policy is None:
            # The operator sets the endpoint, so it may be at a private address.
            policy = Policy.toward(
                "evidence",
                self._endpoint,
                private=True,
                deadline=TIMEOUT,
                most_bytes=MOST,
                most_unpacked=MOST,
            )
            self._client_and_policy = Outbound(), policy
        return self._client_and_policy


def sign_request(
    who: Credentials,
    method: str,
    host: str,
    path: str,
    data: bytes,
    at: datetime,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the headers of a request with AWS Signature Version 4. `path` must be quoted already."""
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
    canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{digest}"
    scope = f"{stamp[:8]}/{who.region}/s3/aws4_request"
    text = (
        f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    )
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
    """Return the Host header of the endpoint, without a default port."""
    parts = urlsplit(endpoint)
    return parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")


def _key(base: str, place: str) -> str:
    """Return the object's key within the blob store; ShelfAway if `place` is not in it."""
    key = place.removeprefix(base)
    if not place.startswith(base) or not PLACE.fullmatch(key):
        raise ShelfAway(f"{place} is not in the blob store {base}")
    return key


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _unlink(file: Path) -> None:
    file.unlink(missing_ok=True)
    for half in file.parent.glob(f"{file.name}.*.half"):  # left by a process that was killed
        half.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Flush a folder: without it a power cut may undo a rename."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
