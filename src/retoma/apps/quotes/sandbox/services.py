"""The four services beside each other, each below its own name, each with its faults and its log.

`/anthropic/v1/messages`, `/serpapi/search.json`, `/fipe/api/v1/carros/marcas`, `/shops/<store>/p/…`;
what a test may ask of a box is below each of them too: `/serpapi/_sandbox/log`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from retoma.apps.quotes.sandbox import fipe, messages, search, shops
from retoma.apps.quotes.sandbox.catalogue import Catalogue
from retoma.engine.ports import Clock
from retoma.sandbox.box import Behavior, Box, latency_of
from retoma.sandbox.faults import BY_CHANCE, Faults

LATE: Final = 1.0  # seconds a slow page takes
# Seconds that the real ones take, from and to.
LATENCIES: Final[Mapping[str, tuple[float, float]]] = {
    "anthropic": (1.5, 5.0),
    "serpapi": (0.8, 3.0),
    "fipe": (0.1, 0.5),
    "shops": (0.2, 2.0),
}
PAID: Final = frozenset({"anthropic", "serpapi"})
OVERLOADED: Final = ("status", {"status": 529})


class Services:
    """Finds the box by the first name in a path."""

    def __init__(self, boxes: Mapping[str, Box]) -> None:
        self.boxes = boxes

    def log(self, name: str) -> list[dict[str, Any]]:
        """Every request to one of them, in its order."""
        return self.boxes[name].log.read(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        name, _, rest = scope["path"].removeprefix("/").partition("/")
        box = self.boxes.get(name)
        if box is None:
            below = {name: f"/{name}" for name in self.boxes}
            await JSONResponse({"services": below}, 404)(scope, receive, send)
            return
        path = f"/{rest}"
        await box({**scope, "path": path, "raw_path": path.encode()}, receive, send)


def build_services(
    catalogue: Catalogue,
    *,
    faults: float = 0.0,
    pace: float = 0.0,
    late: float = LATE,
    clock: Clock | None = None,
    logs: Path | None = None,
) -> Services:
    """`faults`: the share of requests that go wrong, by the catalogue's seed. `pace`: 0, all
    answer at once; 1, they take as long as the real ones. `late`: seconds of a slow page.
    `logs`: a folder; each service writes its own file there."""
    clock = clock or Clock()
    sites = {
        "anthropic": (messages.build_messages(catalogue), messages.refusal, messages.notes),
        "serpapi": (search.build_search(catalogue), search.refusal, search.notes),
        "fipe": (fipe.build_fipe(catalogue.table), fipe.refusal, fipe.notes),
        "shops": (shops.build_shops(catalogue, clock, late), shops.refusal, shops.notes),
    }
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
    return Services(
        {
            name: Box(
                site,
                Faults(seed=catalogue.seed, rate=faults, by_chance=_chances(name)),
                clock=clock,
                log_file=None if logs is None else logs / f"{name}.jsonl",
                behavior=Behavior(
                    rejection=refusal,
                    notes=notes,
                    seconds=latency_of(catalogue.seed, pace, LATENCIES[name]),
                    paid=name in PAID,
                    free=("/v1/models", "/account.json"),
                ),
            )
            for name, (site, refusal, notes) in sites.items()
        }
    )


def _chances(name: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (*BY_CHANCE, OVERLOADED) if name == "anthropic" else tuple(BY_CHANCE)
