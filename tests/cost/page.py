"""The page of what a request may cost: `python -m tests.cost.page` writes it from the code."""

from collections.abc import Iterator
from typing import Final

from retoma.console.connections import PIECES, SMALL, STRANGERS, ConnectionLimits
from retoma.console.listening import KEEP_ALIVE
from retoma.settings import Settings
from retoma.web import Bound
from retoma.web.body import KEYS
from retoma.web.bounds import HEAD
from retoma.web.request_body import LEAST
from retoma.web.request_body import STRANGERS as SMALL_BODY
from retoma.web.room import PATIENCE, SIZE
from tests.cost import web
from tests.cost.doors import MODULES, families_of
from tests.cost.family import KIBIBYTE, MEBIBYTE, Family
from tests.cost.web import FREE_PIECE, GIVEN_AWAY
from tests.house.files import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "request-limits.md"
AGAIN: Final = "python -m tests.cost.page"


def lines() -> Iterator[str]:
    bound, limits, fields = Bound(), ConnectionLimits(), Settings.model_fields
    yield "# Limits of a request"
    yield ""
    yield f"What the server takes from a client, and what that may cost. Written by `{AGAIN}` from the code; `tests/cost` measures it."
    yield ""
    yield "| what | at most | else |"
    yield "|---|---|---|"
    for what, most, otherwise in (
        ("address and headers", f"{HEAD // KIBIBYTE} KiB", "431, 400"),
        ("time for them to arrive", f"{limits.head:g} s", "408"),
        ("time for the body to arrive", f"{bound.seconds:g} s and 1 s for each 64 KiB", "408"),
        (f"time to wait for each {LEAST * bound.seconds / KIBIBYTE:g} KiB of an uploaded file", f"{bound.seconds:g} s", "408"),
        ("time for the answer to begin", f"{bound.seconds:g} s; none for streams, files and large JSON", "503"),
        ("rest of a body that was refused", f"{limits.linger:g} s", "closed"),
        ("rest of an answer that nobody reads on in, less than 1 KiB a second", f"{limits.unread:g} s", "closed"),
        ("answer where nobody signs in", f"{GIVEN_AWAY * 1000:g} ms of CPU; {FREE_PIECE // KIBIBYTE} KiB of memory, however little of it is read", "none needs more"),
        ("connection without a request", f"{KEEP_ALIVE} s", "closed"),
        ("pieces of a chunked body", f"{PIECES:,}, and one for each {SMALL} bytes", "400"),
        ("bodies over 64 KiB and tables, that are worked on at a time", f"{SIZE // MEBIBYTE} MiB; the others wait, {PATIENCE:g} s", "429"),
        ("body where nobody signs in", f"{SMALL_BODY // KIBIBYTE} KiB", "413"),
        ("body", f"{bound.body // MEBIBYTE} MiB", "413"),
        ("depth of JSON", str(bound.shape.depth), "400"),
        ("names in JSON", f"{bound.shape.keys:,}", "400"),
        ("names in one object of JSON, also where JSON may be larger", f"{KEYS:,}", "400"),
        ("lists and objects in JSON", f"{bound.shape.containers:,}", "400"),
        ("values in JSON", f"{bound.shape.values:,}", "400"),
        ("one text in JSON", f"{bound.shape.text:,} characters", "422"),
        ("requests a second of one key, of one address", f"{bound.per_key:g}, {bound.per_address:g}; {bound.burst:g} s of them at once", "429"),
        ("connections (`RETOMA_SERVE_CONNECTIONS`)", f"{fields['serve_connections'].default:,}", "503"),
        ("of them without a sign-in", f"{STRANGERS:.0%}", "the oldest is closed, first of those that keep the server waiting"),
        ("connections of one address (`RETOMA_SERVE_CONNECTIONS_EACH`)", f"{fields['serve_connections_each'].default}; none for this machine and `RETOMA_TRUSTED_PROXIES`", "the same"),
        ("streams (`RETOMA_STREAMS`), of one person (`RETOMA_STREAMS_EACH`)", f"{fields['streams'].default}, {fields['streams_each'].default}", "429"),
    ):  # fmt: skip
        yield f"| {what} | {most} | {otherwise} |"
    yield ""
    yield "Paths that take more, each for operators:"
    yield ""
    yield "| path | bytes | as |"
    yield "|---|---:|---|"
    for path, size in web.MUCH_JSON.items():
        yield f"| `{path}` | {size:,} | JSON |"
    for path, (media, _, _) in web.FILES.items():
        yield f"| `{path}` | {web.FILE_SIZES[path]:,} | `{media.partition(';')[0]}`, as it comes |"
    yield ""
    yield "Nothing may cost more than this, however it is made. Each door is fed inputs that grow by doubling; CPU and memory must grow no faster."
    yield ""
    yield "| door | kinds of hostile inputs | CPU, seconds for each MiB | memory, bytes for each byte |"
    yield "|---|---:|---:|---:|"
    by_door: dict[str, list[Family]] = {}
    for module in MODULES:
        for each in families_of(module):
            by_door.setdefault(each.door, []).append(each)
    for door, families in by_door.items():
        cost = families[0].cost
        yield f"| {door} | {len(families)} | {cost.cpu:g} | {cost.memory:g} |"


def written() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
