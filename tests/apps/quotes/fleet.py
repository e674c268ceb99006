"""The document's Celery project with its quotes: `celery -A tests.apps.quotes.fleet worker …`, told by its environment."""

import json
import logging
import os
from typing import Any

import anthropic  # noqa: F401 — takes seconds, and is inherited by whoever is forked
import structlog
from celery import Celery

from retoma import Retoma
from retoma.apps.quotes import APP
from retoma.apps.quotes.tasks import export_tasks
from retoma.dispatch.celery import CeleryDispatcher
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools
from tests.apps.quotes.aids import settings_for

TOLD = "RETOMA_TEST_QUOTES"
SOON = {"rehint": 1.0, "tick": 0.5}  # seconds, so that a test is short; the rules are the same


def make_celery(broker: str) -> Celery:
    made = Celery("app.tasks", broker=broker)
    made.conf.broker_connection_retry_on_startup = True
    return made


def export(celery: Celery, app: Retoma, queue: str) -> tuple[CeleryDispatcher, Any]:
    """The dispatcher, and the document's task."""
    dispatcher = CeleryDispatcher(celery, app, queue=queue, **SOON)
    return dispatcher, export_tasks(dispatcher, app)


if TOLD in os.environ:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    told = json.loads(os.environ[TOLD])
    retoma_app = Retoma(told["url"])
    out = Outbound(private=frozenset({"127.0.0.1"}))
    tools = Tools(retoma_app, out, settings=settings_for(told["port"], told["url"]))
    retoma_app.install(APP, tools)
    celery_app = make_celery(told["broker"])
    dispatcher, process_quote_request = export(celery_app, retoma_app, told["queue"])
