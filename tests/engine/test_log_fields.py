"""Every line about a job says what its kind wants said: the story's, the engine's, and others' on its behalf."""

from dataclasses import dataclass

import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import LogCapture

from retoma import Context, Permanent, Retoma, Transient
from retoma.testing import FakeClock, drain
from tests.engine.aids import AT_ONCE


@dataclass(frozen=True, slots=True)
class Page:
    number: int


def fields(page: Page, attempt: int) -> dict[str, object]:
    return {"page_number": page.number, "attempt_count": attempt, "job": "never this"}


def broken(page: Page, attempt: int) -> dict[str, object]:
    raise ValueError(page, attempt)


async def test_each_line_has_the_fields_of_its_kind(sqlite_url):
    heard = LogCapture()
    before = structlog.get_config()
    structlog.configure(processors=[merge_contextvars, heard], cache_logger_on_first_use=False)
    try:
        async with Retoma(sqlite_url, clock=FakeClock()) as app:

            @app.job(retry=AT_ONCE, log_fields=fields)
            async def read(ctx: Context, page: Page) -> None:
                ctx.log.info("story")
                structlog.get_logger().info("somebody else")
                if ctx.attempt == 1:
                    raise Transient("not yet")
                raise Permanent("never")

            @app.job(log_fields=broken)
            async def silent(ctx: Context, page: Page) -> None:
                ctx.log.info("silent")

            job = await app.submit(read, Page(7))
            await app.submit(silent, Page(8))
            await drain(app)
            assert ("dead", "done") == tuple(
                each.state for each in sorted(await app.jobs(), key=lambda each: each.id)
            )
    finally:
        structlog.configure(**before)

    of_pages = [line for line in heard.entries if "page_number" in line]
    named = [line for line in heard.entries if line.get("job") == job.id]
    assert {"story", "job.buried"} <= {line["event"] for line in named}
    assert all(7 == line["page_number"] for line in named)
    assert {1, 2} == {line["attempt_count"] for line in named}
    assert 2 == sum(line["event"] == "somebody else" for line in of_pages)
    [silent_line] = [line for line in heard.entries if line["event"] == "silent"]
    assert "page_number" not in silent_line  # what cannot be said keeps no job from its end
