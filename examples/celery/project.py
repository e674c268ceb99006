# project.py
"""A Celery project that runs retoma jobs: an interrupted job resumes after its last saved step."""

import os

from celery import Celery

from retoma import Context, Retoma, Retry
from retoma.dispatch.celery import CeleryDispatcher

app = Retoma(os.environ.get("RETOMA_DATABASE_URL", "sqlite:///work.db"))


@app.job(retry=Retry(attempts=3))
async def quote(ctx: Context, item: str) -> str:
    plan = await ctx.step("ai_analysis", analyse, item)
    offers = await ctx.step("shopping_search", search, plan)
    return f"{item}: {min(offers)}"


async def analyse(item: str) -> str:
    return item.lower()


async def search(plan: str) -> list[int]:
    return [len(plan) * 100, len(plan) * 90]


celery_app = Celery(
    "project", broker=os.environ.get("CELERY_BROKER_URL", "redis://localhost:6379/0")
)
celery_app.conf.broker_connection_retry_on_startup = True
dispatcher = CeleryDispatcher(celery_app, app)
