"""Builds what lives, once, from settings; nothing else names the concrete parts."""

from random import Random

from retoma.engine.ports import Clock, Ids
from retoma.library import Retoma
from retoma.settings import Settings


def build_retoma(
    settings: Settings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    rng: Random | None = None,
) -> Retoma:
    """A Retoma on the database the settings name."""
    return Retoma(
        settings.database_url, clock=clock, ids=ids, rng=rng, evidence=settings.evidence
    )
