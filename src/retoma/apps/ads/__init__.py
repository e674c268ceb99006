"""Ads: missions scraped by remote workers through proxies, their ads stored by writers (seed 004)."""

from retoma.engine.rules.live_settings import Knob, KnobType
from retoma.manifest import Application
from retoma.words import say

INT, DURATION, TEXT = KnobType.INT, KnobType.DURATION, KnobType.TEXT

APP = Application(
    name="ads",
    title=say("Ads"),
    submits=False,
    stories="retoma.apps.ads.steps:stories",
    commands="retoma.apps.ads.cli:ads",
    watch="retoma.apps.ads.store.watch:watch",
    mend="retoma.apps.ads.steps.wake:wake",
    router="retoma.apps.ads.api:routes",
    pages="retoma.apps.ads.pages:routes",
    templates="retoma.apps.ads.pages",
    menu=(
        (say("Mission Control"), "/ads"),
        (say("Mission bank"), "/ads/missions"),
        (say("Workers"), "/ads/workers"),
        (say("Proxies"), "/ads/proxies"),
        (say("Writers"), "/ads/writers"),
        (say("Import"), "/ads/import"),
        (say("Audit of missions"), "/ads/reports"),
    ),
    migrations="retoma.apps.ads.migrations",
    views=("missions", "workers", "proxies", "writers", "mission_logs"),
    refers=(
        ("ads_missions", "extraction"),
        ("ads_missions", "storage"),
        ("ads_sessions", "job"),
    ),
    schedules=(("ads.health", "0 * * * *"),),
    knobs=(
        Knob(
            "session_limit",
            5,
            INT,
            1,
            1000,
            why=say("missions in a session before the proxy is changed"),
        ),
        Knob("max_retries", 2, INT, 0, 100, why=say("attempts before it fails for good")),
        Knob("timeout_session", 180, DURATION, 1, 3600, why=say("until the session is ready")),
        Knob("timeout_job", 6000, DURATION, 1, 86_400, why=say("of a scrape job")),
        Knob("timeout_writer", 6000, DURATION, 1, 86_400, why=say("of a job of the writer")),
        Knob(
            "stall_writer",
            900,
            DURATION,
            1,
            86_400,
            why=say("without new items, before ERROR300"),
        ),
        Knob(
            "max_failed_share",
            0.2,
            KnobType.FLOAT,
            0,
            1,
            why=say("share of ads that are refused before ERROR303"),
        ),
        Knob(
            "polling_session",
            10,
            DURATION,
            0.001,
            600,
            why=say("between two questions about the session"),
        ),
        Knob(
            "polling_job",
            30,
            DURATION,
            0.001,
            600,
            why=say("between two questions about the job"),
        ),
        Knob(
            "polling_ui",
            5,
            DURATION,
            1,
            600,
            why=say("of the pages, where the stream is silent"),
        ),
        Knob(
            "max_proxy_failures",
            3,
            INT,
            1,
            100,
            why=say("failures in a row that switch a proxy off"),
        ),
        Knob(
            "proxy_test_url",
            "https://example.com/",
            TEXT,
            8,
            500,
            why=say("the address asked for through a proxy to test it"),
        ),
    ),
)
