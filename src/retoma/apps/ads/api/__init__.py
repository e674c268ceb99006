"""The ads orchestrator over the API, in the document's words."""

from retoma.apps.ads.api import (
    imports,
    missions,
    operate,
    orchestrator,
    recurrences,
    reports,
    things,
)
from retoma.apps.ads.api.wire import routes

__all__ = [
    "imports",
    "missions",
    "operate",
    "orchestrator",
    "recurrences",
    "reports",
    "routes",
    "things",
]
