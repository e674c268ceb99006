"""A Celery project with matches: `celery -A tests.apps.matches.fleet worker …`, told by its environment."""

import json
import os
from typing import Any

from celery import Celery

from retoma import Retoma, logs
from retoma.apps.matches import APP
from retoma.apps.matches.tasks import export_tasks
from retoma.dispatch.celery import CeleryDispatcher
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools
from tests.apps.matches.run_matches import settings_for

TOLD = "RETOMA_TEST_MATCHES"
SOON = {"rehint": 1.0, "tick": 0.5}  # seconds, so that a test is short; the rules are the same


def make_celery(broker: str) -> Celery:
    made = Celery("app.tasks", broker=broker)
    made.conf.broker_connection_retry_on_startup = True
    made.conf.worker_redirect_stdouts = False  # lines as they are written
    return made


def export(celery: Celery, app: Retoma, queue: str) -> tuple[CeleryDispatcher, Any]:
    """The dispatcher, and the document's task."""
    dispatcher = CeleryDispatcher(celery, app, queue=queue, **SOON)
    return dispatcher, export_tasks(dispatcher)


if TOLD in os.environ:
    logs.configure("INFO")
    told = json.loads(os.environ[TOLD])
    retoma_app = Retoma(told["url"])
    out = Outbound(private=frozenset({"127.0.0.1"}))
    tools = Tools(retoma_app, out, settings=settings_for(told["port"], told["url"]))
    retoma_app.install(APP, tools)
    celery_app = make_celery(told["broker"])
    dispatcher, scrape_match = export(celery_app, retoma_app, told["queue"])
