"""A world to be looked at: `retoma up` in a folder of its own, its five applications at work, and the address
of every page of theirs; and the same house on its first day, in which nothing has happened yet."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext

from retoma.bootstrap import build_retoma, install_applications
from retoma.cli.serve import Server, prepare
from tests.web.aids import PATIENT, link_into, set_up

APPLICATIONS = "ads,quotes,documents,matches,embeddings"
LINK = re.compile(r"http://\S+/enter/\w+")
PATIENCE = 240.0  # seconds for every application to have something to show
LOOK = 2.0
LISTS = {
    "board": "/",
    "board-runners": "/runners",
    "board-dead": "/dead",
    "ads": "/ads",
    "ads-missions": "/ads/missions",
    "ads-workers": "/ads/workers",
    "ads-proxies": "/ads/proxies",
    "ads-writers": "/ads/writers",
    "ads-import": "/ads/import",
    "ads-reports": "/ads/reports",
    "quotes-lotes": "/quotes/lotes",
    "quotes": "/quotes",
    "quotes-stuck": "/quotes/stuck",
    "quotes-stats": "/quotes/stats",
    "quotes-import": "/quotes/import",
    "documents": "/classificador",
    "documents-new": "/classificador/nova",
    "documents-projects": "/classificador/projeto",
    "documents-project-new": "/classificador/projeto/novo",
    "matches": "/matches",
    "matches-stored": "/matches/partidas",
    "matches-replay": "/matches/reler",
    "embeddings": "/embeddings",
    "embeddings-new": "/embeddings/nova",
    "embeddings-search": "/embeddings/busca",
    "embeddings-dead": "/embeddings/falhas",
}
# Below a list: the page that has the way there, and how that looks; what is done, where there is a choice.
DETAILS = {
    "ads-mission": ("/ads/missions?status=completed", r"/ads/missions/MIS-\d+"),
    "ads-worker": ("/ads/workers", r"/ads/workers/WRK-\d+"),
    "ads-proxy": ("/ads/proxies", r"/ads/proxies/PRX-\d+"),
    "ads-writer": ("/ads/writers", r"/ads/writers/WRT-\d+"),
    "quotes-lote": ("/quotes/lotes", r"/quotes/lotes/\d+"),
    "quotes-quote": ("/quotes?status=DONE", r"/quotes/\d+"),
    "documents-execution": ("/classificador", r"/classificador/execucao/\d+"),
    "documents-document": ("documents-execution", r"/classificador/execucao/\d+/documento/\d+"),
    "documents-project": ("/classificador/projeto", r"/classificador/projeto/\d+"),
    "matches-round": ("/matches", r"/matches/rodada/\d+"),
    "matches-task": ("matches-round", r"/matches/tarefa/\d+"),
    "matches-match": ("/matches/partidas", r"/matches/partidas/\d+"),
    "embeddings-collection": ("/embeddings", r"/embeddings/colecao/[\w.-]+"),
}
FOUND = ("ads-report", "embeddings-found")  # by what was found before
REPORT = "/ads/reports?mission={}"
SEARCHED = "/embeddings/busca?colecao={}&q=prazo+de+pagamento"


@contextmanager
def living(
    folder: Path, python: str = sys.executable, environment: dict[str, str] | None = None
) -> Iterator[str]:
    """Run `retoma up` until the block ends; a link that signs in."""
    with (folder / "up.log").open("w") as log:
        command = [python, "-u", "-m", "retoma", "up"]
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            yield _said(folder / "up.log", child)
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(60)


def _said(log: Path, child: "subprocess.Popen[bytes]") -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and child.poll() is None:
        if found := LINK.search(log.read_text()):
            return found[0]
        _rest(child)
    raise SystemExit(f"`retoma up` gave no link:\n{log.read_text()}")


def _rest(child: "subprocess.Popen[bytes]") -> None:
    """A while, unless it ends before."""
    try:
        child.wait(0.3)
    except subprocess.TimeoutExpired:
        return


def addresses(someone: BrowserContext, origin: str) -> dict[str, str]:
    """Of every page, once each application has come so far that it has one."""
    page = someone.new_page()
    until = time.monotonic() + PATIENCE
    while len(found := _details(someone, origin)) < len(DETAILS):
        if time.monotonic() > until:
            raise SystemExit(f"no page yet of {sorted(DETAILS.keys() - found.keys())}")
        page.wait_for_timeout(LOOK * 1000)
    page.close()
    mission, collection = found["ads-mission"], found["embeddings-collection"]
    return {
        **LISTS,
        **found,
        "ads-report": REPORT.format(mission.rpartition("/")[2]),
        "embeddings-found": SEARCHED.format(collection.rpartition("/")[2]),
    }


def _details(someone: BrowserContext, origin: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, (where, looks) in DETAILS.items():
        place = found.get(where, where if where.startswith("/") else None)
        html = someone.request.get(origin + place).text() if place else ""
        links = re.findall(r'href="(/[^"?#]*)"', html.partition("<main")[2])
        if leads := [each for each in links if re.fullmatch(looks, each)]:
            found[name] = leads[0]
    return found


@asynccontextmanager
async def first_day(url: str) -> AsyncIterator[tuple[str, Server]]:
    """A link into a house with the five applications, in which nothing has happened."""
    chosen = set_up(url, serve_port=0, applications=APPLICATIONS)
    async with build_retoma(chosen) as app:
        server = await prepare(app, chosen, install_applications(app, chosen), bound=PATIENT)
        yield await link_into(app, server.origin), server
