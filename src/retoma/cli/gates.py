"""`retoma limits`, `pools`, `rates`, `breakers`: what may hold jobs back.

What a thing of a pool is (an address with its password, say) is told to those who hold it, not here.
"""

from typing import Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import clean
from retoma.words import say, speak

NAMED = Annotated[str, typer.Argument(metavar="KEY")]

limits = Noun("gates")
limits.verb(
    "list_limits",
    "list",
    shows=Rows(
        (say("key"), say("running"), say("at most"), say("set by")),
        lambda each: (
            *(each.key, each.used, each.cap),
            speak("a person") if each.by_hand else speak("the code"),
        ),
        none=say("no limits"),
        more=lambda last: say("more: --after {key}", key=clean(last.key)),
    ),
    takes={"after": "After this key: the next page."},
)
limits.verb(
    "set_limit",
    "set",
    shows=lambda _, given: (
        speak("limit {key} is what the code says", key=clean(given.key))
        if given.cap is None
        else speak(
            "limit {key}: at most {cap} run at once", key=clean(given.key), cap=given.cap
        )
    ),
    document=lambda _, given: vars(given),
    takes={
        "key": NAMED,
        "cap": Annotated[
            int | None,
            typer.Option(min=1, help="How many at once; without it, as the code says."),
        ],
    },
)

pools = Noun("gates")
pools.verb(
    "list_pools",
    "list",
    shows=Rows(
        (say("pool"), say("things"), say("on"), say("held"), say("at least on")),
        lambda each: (each.name, each.items, each.on, each.held, each.rules.healthy),
        none=say("no pools"),
    ),
)
pools.verb(
    "show_pool",
    "show",
    shows=Rows(
        (
            *(say("thing"), say("vendor"), say("state"), say("why"), say("held by job")),
            *(say("until"), say("uses"), say("failures"), say("score"), say("last used")),
        ),
        lambda each: (
            *(each.name, each.vendor, each.state, each.reason, each.job, each.scope),
            *(each.uses, each.failures, f"{each.score:.2f}", each.used_at),
        ),
    ),
    document=lambda found, _: [
        {name: getattr(each, name) for name in each.__slots__ if name != "value"}
        for each in found
    ],
)


def switched(state: str) -> Any:
    return lambda _, given: {"pool": given.name, "things": given.things, "state": state}


pools.verb(
    "switch_on",
    "on",
    shows=lambda _, given: speak(
        "pool {pool}: switched on {things}",
        pool=clean(given.name),
        things=clean(", ".join(given.things)),
    ),
    document=switched("on"),
)
pools.verb(
    "switch_off",
    "off",
    shows=lambda _, given: speak(
        "pool {pool}: switched off {things}; who holds it may end with it",
        pool=clean(given.name),
        things=clean(", ".join(given.things)),
    ),
    document=switched("off"),
)
pools.verb(
    "free_thing",
    "free",
    shows=lambda _, given: speak(
        "pool {pool}: {thing} is free", pool=clean(given.name), thing=clean(given.thing)
    ),
    document=lambda _, given: {"pool": given.name, "thing": given.thing, "held": False},
)


def bound(rate: Any) -> str:
    """What a person allows of a rate that is found by trying."""
    if not rate.adaptive:
        return ""
    return speak("adaptive") if rate.bound is None else f"{rate.bound:g}"


rates = Noun("gates")
rates.verb(
    "list_rates",
    "list",
    shows=Rows(
        (
            *(say("key"), say("calls a second"), say("at once"), say("at most")),
            *(say("refused"), say("paused until")),
        ),
        lambda each: (
            *(each.key, f"{each.per_second:.3g}", f"{each.burst:.3g}", bound(each)),
            *(each.refused if each.adaptive else "", each.paused_until),
        ),
        none=say("no rates"),
    ),
)
rates.verb(
    "set_rate",
    "set",
    shows=lambda _, given: speak(
        "rate {key}: {per_second:g} calls a second from now on",
        key=clean(given.key),
        per_second=given.per_second,
    ),
    document=lambda _, given: vars(given),
    takes={
        "key": NAMED,
        "per_second": Annotated[float, typer.Argument(metavar="PER_SECOND")],
        "burst": "How many at once; without it, a second's worth.",
    },
)

breakers = Noun("gates")
breakers.verb(
    "list_breakers",
    "list",
    shows=Rows(
        (
            *(say("breaker"), say("state"), say("outages"), say("opens at")),
            *(say("since"), say("why"), say("next probe")),
        ),
        lambda each: (
            *(each.name, each.state, each.failures, each.threshold),
            *(each.since, each.reason, each.probe_at),
        ),
        none=say("no breakers"),
    ),
)
breakers.verb(
    "open_breaker",
    "open",
    shows=lambda _, given: speak(
        "breaker {name} is open: who needs it waits outside, one job tries it after its rest",
        name=clean(given.name),
    ),
    document=lambda _, given: {"name": given.name, "state": "open"},
)
breakers.verb(
    "close_breaker",
    "close",
    shows=lambda _, given: speak("breaker {name} is closed: all go on", name=clean(given.name)),
    document=lambda _, given: {"name": given.name, "state": "closed"},
)
