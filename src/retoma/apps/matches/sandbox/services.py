"""The match site behind one door, with its faults, its log, and what a test may change while it runs.

Beside what every box has below `/_sandbox/` there is `world`: `GET` tells its step, layouts and odd
matches; `POST` changes one of them: `{"step": 1}`, `{"layout": "modern", "league": "brasileirao"}`,
`{"league": "brasileirao", "match": "flamengo-x-santos", "odd": "score_100"}`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from retoma.apps.matches.sandbox import site
from retoma.apps.matches.sandbox.season import Season
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput
from retoma.sandbox.box import ADMIN, Behavior, Box, latency_of
from retoma.sandbox.faults import BY_CHANCE, Faults

LATENCY: Final = (0.15, 1.5)  # seconds that a real site takes, from and to
# What chance brings where nothing else is said; HANG in it costs a caller his whole patience.
CHANCES: Final = (*BY_CHANCE, ("status", {"status": 503}), ("hang", {}))
BRIEF: Final = (*BY_CHANCE, ("status", {"status": 503}))  # the same, for who cannot wait


class Matches:
    """The site, as one application."""

    def __init__(self, world: site.World, box: Box) -> None:
        self.world = world
        self.box = box

    def log(self) -> list[dict[str, Any]]:
        """Every request, in its order: the witness."""
        return self.box.log.read(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == f"{ADMIN}world":
            answer = await self._told(Request(scope, receive))
            await answer(scope, receive, send)
        else:
            await self.box(scope, receive, send)

    async def _told(self, request: Request) -> Response:
        if request.method == "POST":
            try:
                self.world.tell(site.told_in(await request.body()))
            except BadInput as error:
                return JSONResponse({"error": str(error)}, status_code=422)
        return JSONResponse(self.world.state())


def build_site(
    season: Season,
    *,
    faults: float = 0.0,
    pace: float = 0.0,
    chances: Sequence[tuple[str, dict[str, Any]]] = CHANCES,
    clock: Clock | None = None,
    log: Path | None = None,
) -> Matches:
    """`faults`: the share of requests that go wrong, by the season's seed, each in one of the ways of
    `chances`. `pace`: 0, it answers at once; 1, it takes as long as a real one. `log`: the file in
    which every request is written down."""
    world = site.World(season)
    box = Box(
        site.build_pages(world),
        Faults(seed=season.seed, rate=faults, by_chance=chances),
        clock=clock,
        log_file=log,
        behavior=Behavior(
            rejection=site.refusal,
            notes=site.notes,
            seconds=latency_of(season.seed, pace, LATENCY),
        ),
    )
    return Matches(world, box)
