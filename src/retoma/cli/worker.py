"""`retoma worker-service`: the scrape worker, as a program."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retoma import logs, settings
from retoma.cli.runner import run_on_the_quickest_loop
from retoma.cli.services import key_of, serve
from retoma.console.exits import Exit, Stop
from retoma.engine.rules.duration import seconds
from retoma.library import Retoma
from retoma.outbound.client import PRIVATE_HOSTS
from retoma.outbound.policy import private_hosts
from retoma.programs.worker import ADAPTERS, Config, build_worker
from retoma.programs.worker.way import Way
from retoma.secret import Secret
from retoma.web import Face
from retoma.words import say

RESULTS_TOKEN = "RETOMA_WORKER_RESULTS_TOKEN"  # noqa: S105 — the name of a variable
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asked for."""

    site: str
    data: Path
    adapter: str
    host: str
    port: int
    keys: bool
    limit: float
    watch: float
    keep: str
    storage: str | None
    browser: bool
    chromium: str | None
    misbehave: bool
    with_parent: bool


def run(wanted: Wanted) -> None:
    chosen = settings.read()
    logs.configure(chosen.log_level)
    config = _config(wanted)
    retoma = Retoma(f"sqlite:///{wanted.data.resolve() / 'worker.db'}")
    build = partial(build_worker, config, retoma, api_key=key_of(chosen))
    run_on_the_quickest_loop(
        serve(build, host=wanted.host, port=wanted.port, with_parent=wanted.with_parent)
    )


def _config(wanted: Wanted) -> Config:
    adapter = ADAPTERS.get(wanted.adapter)
    if adapter is None:
        raise Stop(
            Exit.USAGE,
            say(
                "there is no adapter {name!r}; there are {known}",
                name=wanted.adapter,
                known=", ".join(ADAPTERS),
            ),
        )
    token = os.environ.get(RESULTS_TOKEN)
    if token is None and not Face(host=wanted.host).is_loopback and wanted.storage is None:
        raise Stop(
            Exit.USAGE,
            say(
                "{host} can be reached from elsewhere: set {name}, which whoever fetches results"
                " must bring",
                host=wanted.host,
                name=RESULTS_TOKEN,
            ),
        )
    access, secret = (os.environ.get(name, "") for name in KEYS)
    return Config(
        site=wanted.site,
        adapter=adapter,
        folder=wanted.data.resolve(),
        way=_browser(wanted.chromium) if wanted.browser else Way,
        keys=wanted.keys,
        limit=wanted.limit,
        watch=wanted.watch,
        keep=seconds(wanted.keep),
        private=private_hosts(os.environ.get(PRIVATE_HOSTS, "")),
        results_token=Secret(token) if token else None,
        storage=wanted.storage,
        storage_keys=(access, secret) if access and secret else None,
        misbehaves=wanted.misbehave,
    )


def _browser(chromium: str | None) -> Callable[..., Way]:
    """The one that was named, else one on the PATH, else the one that playwright has installed."""
    try:
        from retoma.chromium import (
            installed_by_playwright,
            program,
        )
        from retoma.programs.worker.browser import (
            BrowserWay,
        )
    except ImportError:
        raise Stop(
            Exit.UNAVAILABLE,
            say("--browser needs playwright: pip install 'retoma[browser]'"),
        ) from None
    found = program(chromium)
    if found is None and chromium is not None:
        raise Stop(Exit.USAGE, say("--chromium: there is no program {name!r}", name=chromium))
    if found is None and not installed_by_playwright():
        raise Stop(
            Exit.UNAVAILABLE,
            say(
                "--browser finds no Chromium: install one (on Debian: apt-get install chromium),"
                " or name its program with --chromium"
            ),
        )
    return partial(BrowserWay, chromium=found)
