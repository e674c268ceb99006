"""The endpoint behind one door, with its faults and its log."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from retoma.apps.embeddings.sandbox import openai, others
from retoma.engine.ports import Clock
from retoma.sandbox.box import Behavior, Box, latency_of
from retoma.sandbox.faults import BY_CHANCE, Faults

LATENCY: Final = (0.1, 0.6)  # seconds that the real one takes, from and to
AWAY: Final = ("status", {"status": 503})


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
    site = openai.build_openai(seed)
    site.routes.extend(others.routes())
    return Box(
        site,
        Faults(seed=seed, rate=faults, by_chance=(*BY_CHANCE, AWAY)),
        clock=clock,
        log_file=log,
        behavior=Behavior(
            rejection=openai.refusal,
            notes=openai.notes,
            seconds=latency_of(seed, pace, LATENCY),
            paid=True,
            free=("/v1/models",),
        ),
    )


def embedded_twice(log: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Texts that were paid for more than once, by their fingerprints, and how often."""
    paid = Counter(
        f"{line['model']} {text}" for line in log if line.get("paid") for text in line["inputs"]
    )
    return {text: times for text, times in paid.items() if times > 1}
