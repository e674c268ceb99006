"""Store the results of a scrape: pages in a parts file, then one complete results file."""

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from retoma.blob_stores import Credentials, sign_request
from retoma.engine.rules.errors import BadInput, Permanent, RetomaError, Transient
from retoma.outbound import Outbound, Policy
from retoma.programs.worker.model import STORAGE, STORAGE_KEY
from retoma.words import say

PARTS: Final = "parts"
RESULTS: Final = "results"
TIMEOUT: Final = 300.0  # seconds for results to reach the storage


def parts_file(folder: Path, job_id: str) -> Path:
    return folder / PARTS / f"{job_id}.jsonl"


def results_file(folder: Path, job_id: str) -> Path:
    return folder / RESULTS / job_id / f"{job_id}_results.json"


def append(file: Path, begin: int, ads: Sequence[dict[str, Any]]) -> int:
    """Write a page at offset `begin` and return its end. Idempotent."""
    data = "".join(f"{json.dumps(ad, ensure_ascii=False)}\n" for ad in ads).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.truncate(begin)  # what a killed worker wrote without saving its step
        out.seek(begin)
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    return begin + len(data)


def write_whole(parts: Path, results: Path, end: int, most: int | None) -> int:
    """Write all ads as {"ads": […]}, each id once, and return their number. Atomic."""
    size = parts.stat().st_size if parts.exists() else 0
    if size < end:
        raise Permanent(say("the stored pages are gone"), code="permanent")
    results.parent.mkdir(parents=True, exist_ok=True)
    half = results.with_suffix(".half")
    count = 0
    with half.open("w", encoding="utf-8") as out:
        out.write('{"ads": [')
        for line in _unique_lines(parts, end):
            if most is not None and count >= most:
                break
            out.write(f"{',' if count else ''}\n{line}")
            count += 1
        out.write("\n]}\n")
        out.flush()
        os.fsync(out.fileno())
    half.replace(results)
    folder = os.open(results.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return count


def tidy(folder: Path, before: float) -> int:
    """Remove files not changed since `before` and return their number."""
    old = [
        file
        for pattern in (f"{PARTS}/*.jsonl", f"{RESULTS}/*/*")
        for file in folder.glob(pattern)
        if file.stat().st_mtime < before
    ]
    for file in old:
        file.unlink(missing_ok=True)
        if file.parent.parent.name == RESULTS and not any(file.parent.iterdir()):
            file.parent.rmdir()
    return len(old)


def _unique_lines(parts: Path, end: int) -> Iterator[str]:
    """Yield each ad once: a site may move an ad to another page during a scrape."""
    seen: set[str] = set()
    if not parts.exists():
        return
    with parts.open("rb") as lines:
        for line in lines:
            if lines.tell() > end:
                return
            id_ = json.loads(line)["id"]
            if id_ not in seen:
                seen.add(id_)
                yield line.decode().rstrip("\n")


class Storage:
    """An S3-compatible bucket for results."""

    def __init__(self, out: Outbound, address: str, keys: tuple[str, str] | None) -> None:
        """`address`: s3://bucket/prefix?endpoint=https://…&region=…"""
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query))
        region = options.pop("region", "us-east-1")
        endpoint = options.pop("endpoint", f"https://s3.{region}.amazonaws.com").rstrip("/")
        if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or options:
            raise BadInput(
                say(
                    "results can be stored in s3://bucket/prefix?endpoint=https://…&region=…, or locally"
                )
            )
        if keys is None:
            raise BadInput(
                say(
                    "results in S3 need AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                    " in the environment"
                )
            )
        self._out = out
        self._who = Credentials(keys[0], keys[1], region)
        self._endpoint = endpoint
        prefix = parts.path.strip("/")
        self._path = f"/{parts.netloc}/" + (f"{quote(prefix)}/" if prefix else "")
        # The operator sets the endpoint, so it may be at a private address.
        self._policy = Policy.toward("storage", endpoint, private=True, deadline=TIMEOUT)

    async def put(self, file: Path, job_id: str, at: datetime) -> str:
        """Upload a file and return its URL. Fails with ERROR401 if the keys are rejected, else ERROR400."""
        path = f"{self._path}{job_id}/{file.name}"
        data = await asyncio.get_running_loop().run_in_executor(None, file.read_bytes)
        host = urlsplit(self._endpoint).netloc.lower()
        headers = sign_request(self._who, "PUT", host, path, data, at)
        del headers["host"]  # the client sets it, as it was signed
        url = f"{self._endpoint}{path}"
        try:
            answer = await self._out.request(
                self._policy, "PUT", url, headers=headers, content=data, accept=range(600)
            )
        except RetomaError:
            raise Transient(say("the storage does not answer"), code=STORAGE) from None
        if answer.status in (401, 403):
            raise Permanent(
                say("the storage answered {status}", status=answer.status), code=STORAGE_KEY
            )
        if answer.status >= 300:
            raise Transient(
                say("the storage answered {status}", status=answer.status), code=STORAGE
            )
        return url
