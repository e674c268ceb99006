"""Who has no dispatcher pays for none; who forks has connections of its own."""

import asyncio
import os
import subprocess
import sys

import pytest

from retoma import Context, Retoma, State
from retoma.dispatch.polling import Polling
from retoma.engine.store.hints import Hint
from tests.house.files import ROOT

UNWANTED = ("celery", "kombu", "redis", "billiard")


def test_the_bell_is_all_there_is_to_polling():
    polling = Polling()

    polling.hint([Hint("work", 1)])
    polling.close()

    assert 0 == polling.most


@pytest.mark.parametrize("module", ["retoma.cli", "retoma.library", "retoma.engine.run.hinted"])
def test_celery_is_imported_by_nobody_who_did_not_ask_for_it(module):
    script = f"import sys, {module}\nprint([m for m in {UNWANTED} if m in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_connections_of_its_own(database_url):
    """As a web server or a pool does: what the parent has open goes on working in the parent."""
    app = Retoma(database_url)

    async def work(ctx: Context, payload: int) -> int:
        return payload

    app.job(work)
    take_warning = asyncio.run(app.submit("work", 1))

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            made = asyncio.run(app.submit("work", 2))
            code = 0 if made.id != take_warning.id else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    asyncio.run(app.submit("work", 3))
    counts = asyncio.run(app.insights.counts())
    asyncio.run(app.close())

    assert 0 == os.waitstatus_to_exitcode(status)
    assert {State.WAITING: 3} == counts
