"""Matches: rounds scraped with zero tolerance; every match whole, or named with its evidence (seed 003)."""

from retoma.apps.matches.layouts import EACH_SITE, layout_choices
from retoma.engine.rules.live_settings import Knob, KnobType
from retoma.manifest import Application
from retoma.words import say

APP = Application(
    name="matches",
    title=say("Matches"),
    submits=False,
    stories="retoma.apps.matches.steps:stories",
    commands="retoma.apps.matches.cli:matches",
    watch="retoma.apps.matches.store.runs:watch",
    router="retoma.apps.matches.api:routes",
    pages="retoma.apps.matches.pages:routes",
    templates="retoma.apps.matches.pages",
    menu=((say("Rounds"), "/matches"), (say("Stored matches"), "/matches/partidas")),
    migrations="retoma.apps.matches.migrations",
    views=("scrape_jobs", "scrape_tasks", "partidas"),
    refers=(("match_tasks", "job"), ("match_runs", "discovery")),
    knobs=(
        Knob(
            "layouts",
            EACH_SITE,
            KnobType.CHOICE,
            choices=layout_choices(),
            why=say("layouts that are tried before each site's own, the newest first"),
        ),
        Knob(
            "proxies",
            "",
            KnobType.TEXT,
            0,
            200,
            why=say("pool of proxies by which pages are asked for; empty: none"),
        ),
        Knob(
            "patience",
            "6m",
            KnobType.DURATION,
            0,
            86_400,
            why=say("how long an outage of a site is waited out, in all attempts of a match"),
        ),
    ),
)
