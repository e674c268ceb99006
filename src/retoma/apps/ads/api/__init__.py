"""The ads orchestrator over the API, in the document's words."""

from retoma.apps.ads.api import (
    generate,
    missions,
    onboarding,
    operate,
    orchestrator,
    reports,
    things,
)
from retoma.apps.ads.api.how import routes

__all__ = [
    "generate",
    "missions",
    "onboarding",
    "operate",
    "orchestrator",
    "reports",
    "routes",
    "things",
]
