"""Quotes: what a product or a vehicle costs, resumed where it stopped and paid for once (seed 000)."""

from retoma.engine.knob import Knob, KnobType
from retoma.manifest import Application, JsonBody
from retoma.words import say

APP = Application(
    name="quotes",
    title=say("Quotes"),
    submits=False,
    stories="retoma.apps.quotes.steps:stories",
    checks="retoma.apps.quotes.checks:check",
    router="retoma.apps.quotes.api:routes",
    pages="retoma.apps.quotes.pages:routes",
    watch="retoma.apps.quotes.store:watch",
    templates="retoma.apps.quotes.pages",
    menu=(
        (say("Lotes of quotes"), "/quotes/lotes"),
        (say("Quotes"), "/quotes"),
        (say("Stuck quotes"), "/quotes/stuck"),
        (say("Stats"), "/quotes/stats"),
    ),
    uploads=(("/api/lotes/import", 20 << 20), ("/quotes/import", 20 << 20)),
    large_json=(JsonBody("/api/lotes", 16 << 20, keys=50_000),),  # ten thousand quotes
    schedules=(
        ("recover_stuck_quotes", "*/5 * * * *"),
        ("cleanup_old_processing", "0 4 * * *"),
    ),
    migrations="retoma.apps.quotes.migrations",
    views=("quote_requests",),
    refers=(("quotes", "job"),),
    knobs=(
        Knob("max_products", 10, KnobType.INT, 1, 100, why=say("pages tried for a quote")),
        Knob("stores_at_once", 4, KnobType.INT, 1, 50, why=say("shops asked at the same time")),
    ),
)
