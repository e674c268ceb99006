"""OpenRouter behind one door, with its faults and its log."""

from pathlib import Path
from typing import Final

from retoma.apps.documents.sandbox import openrouter
from retoma.engine.ports import Clock
from retoma.sandbox.box import Behavior, Box, latency_of
from retoma.sandbox.faults import BY_CHANCE, Faults

LATENCY: Final = (1.0, 6.0)  # seconds that the real one takes, from and to
AWAY: Final = ("status", {"status": 502})


def build_service(
    seed: int = 1,
    *,
    faults: float = 0.0,
    pace: float = 0.0,
    clock: Clock | None = None,
    log: Path | None = None,
) -> Box:
    """`faults`: the share of requests that go wrong, by the seed. `pace`: 0, it answers at once; 1, it
    takes as long as the real one. `log`: the file in which every request is written down."""
    return Box(
        openrouter.build_openrouter(seed),
        Faults(seed=seed, rate=faults, by_chance=(*BY_CHANCE, AWAY)),
        clock=clock,
        log_file=log,
        behavior=Behavior(
            rejection=openrouter.refusal,
            notes=openrouter.notes,
            seconds=latency_of(seed, pace, LATENCY),
            paid=True,
            free=("/api/v1/models", "/api/v1/key"),
        ),
    )
