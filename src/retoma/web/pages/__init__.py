"""Mission Control: pages drawn by the server, kept right by the stream."""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter

from retoma.web.pages import (
    alerts,
    audit,
    batches,
    board,
    checks,
    dead,
    disk,
    entrance,
    gates,
    job,
    jobs,
    pauses,
    people,
    pools,
    runners,
    schedules,
    settings,
)
from retoma.web.pages.kit import Pages
from retoma.web.pages.live import Screens
from retoma.web.pages.route import told

__all__ = ["ROUTERS", "Pages", "Screens", "told"]

ROUTERS: Final[Sequence[APIRouter]] = (
    *(entrance.routes, jobs.routes, job.routes),
    *(batches.routes, dead.routes, board.routes, alerts.routes),
    *(runners.routes, pools.routes, gates.routes, pauses.routes),
    *(schedules.routes, audit.routes),
    *(people.routes, settings.routes, disk.routes, checks.routes),
)
