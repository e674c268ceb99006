"""What a long history costs over the API and on pages: each asked of a small house and a large one.

The same questions in turns, through the whole of the site but for the socket. The history is that of
`bench.history`.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from bench.child import call
from bench.compare import Figures, Measure
from bench.history import LIMIT, OLD, RARE, address, middle_batch
from bench.places import Places

if TYPE_CHECKING:
    import httpx2

HERE: Final = "bench.api"
HISTORY: Final = "bench.history:write_history"
KEY: Final = "bench-" + "k" * 40

# By name: the path, with {job} and {batch} from the middle of the history.
QUESTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jobs": "/api/jobs",
        "jobs_dead": "/api/jobs?state=dead",
        "jobs_rare": f"/api/jobs?kind={RARE}",
        "jobs_old": f"/api/jobs?kind={OLD}",
        "jobs_batch": "/api/jobs?batch={batch}",
        "jobs_code": "/api/jobs?code=exception",
        "jobs_counts": "/api/jobs/counts",
        "job": "/api/jobs/{job}",
        "job_events": "/api/jobs/{job}/events",
        "job_attempts": "/api/jobs/{job}/attempts",
        "job_steps": "/api/jobs/{job}/steps",
        "job_evidence": "/api/jobs/{job}/evidence",
        "job_explain": "/api/jobs/{job}/explain",
        "job_costs": "/api/jobs/{job}/costs",
        "batches": "/api/batches?limit=2",
        "batch": "/api/batches/{batch}",
        "batch_items": "/api/batches/{batch}/items",
        "batch_costs": "/api/batches/{batch}/costs",
        "dead": "/api/dead?limit=20",
        "dead_groups": "/api/dead/groups?batch={batch}",
        "alerts": "/api/alerts",
        "runners": "/api/runners",
        "schedules": "/api/schedules",
        "events": "/api/events?limit=10",
        "limits": "/api/limits",
        "pools": "/api/pools",
        "breakers": "/api/breakers",
        "costs": "/api/costs",
        "budgets": "/api/budgets",
        "pauses": "/api/pauses",
        "disk": "/api/disk",
        "metrics": "/metrics",
        "page_board": "/",
        "page_jobs": "/jobs",
        # Of the pages of batches and dead letters a small house has less to show: no growth is seen there.
        "page_job": "/jobs/{job}",
        "page_batch": "/batches/{batch}",
    }
)


# --- In the parent


def growth(make: str, small: int, large: int, samples: int) -> Measure:
    """How many times longer each of QUESTIONS takes with `large` jobs of history than with `small`."""

    def measure(places: Places) -> Figures:
        urls = [address(places, make, f"api_{side}") for side in ("small", "large")]
        for url, jobs in zip(urls, (small, large), strict=True):
            call(HISTORY, limit=LIMIT, url=url, jobs=jobs)
        ratios = call(f"{HERE}:ask_in_turns", limit=LIMIT, urls=urls, samples=samples)
        return tuple(ratios[name] for name in QUESTIONS)

    return measure


# --- In a child


def ask_in_turns(urls: list[str], samples: int) -> dict[str, float]:
    return asyncio.run(ask(urls, samples))


async def ask(urls: list[str], samples: int) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        houses = [await stack.enter_async_context(house(url)) for url in urls]
        return {name: await ratio(houses, path, samples) for name, path in QUESTIONS.items()}


async def ratio(
    houses: "list[tuple[httpx2.AsyncClient, dict[str, int]]]", path: str, samples: int
) -> float:
    """Each as often, the order changing; the first of each only warms it up."""
    taken: list[list[float]] = [[], []]
    for turn in range(samples + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            client, middle = houses[side]
            began = perf_counter()
            answer = await client.get(path.format(**middle))
            taken[side].append(perf_counter() - began)
            if answer.status_code != 200:
                raise AssertionError(f"{path}: {answer.status_code} {answer.text[:200]}")
    small, large = (statistics.median(seconds[1:]) for seconds in taken)
    return large / small


@asynccontextmanager
async def house(url: str) -> "AsyncIterator[tuple[httpx2.AsyncClient, dict[str, int]]]":
    """A client of a site on this database, and a job and a batch from the middle of it."""
    import httpx2

    from retoma import Retoma, settings
    from retoma.web import Bound, build_site

    app = Retoma(url)
    given: Any = settings.read(database_url=url, serve_port=80, api_key=KEY)
    site = build_site(app, given, bound=Bound(per_key=1e9, per_address=1e9))
    headers = {"x-api-key": KEY}
    async with app:
        batch = await (await app.database()).read(middle_batch)
        transport = httpx2.ASGITransport(app=site)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers
        ) as client:
            first = (await client.get(f"/api/batches/{batch}/items")).json()
            yield client, {"batch": batch, "job": first["items"][0]["id"]}
