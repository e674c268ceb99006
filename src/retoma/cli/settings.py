"""`retoma settings`: every setting and knob, and a hand on those that change while processes run."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import at
from retoma.words import say, speak, tell

if TYPE_CHECKING:
    from retoma.library import Retoma
    from retoma.services.settings import KnobSeen, Setting

OTHERS = {
    "others": Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:APP",
            help="Also the knobs of this application; package.module:app.",
        ),
    ]
}


def know_knobs(app: "Retoma", given: SimpleNamespace) -> None:
    """Declare the settings of the applications that RETOMA_APPLICATIONS and `--app` name."""
    from retoma import settings as own
    from retoma.cli.runner import load
    from retoma.manifest import application_of

    for name in filter(None, own.read().applications.split(",")):
        application = application_of(name)
        app.knobs.declare(application.name, application.knobs)
    if given.others is not None:
        app.knobs.know(load(given.others).knobs)


def value_of(value: Any, unit: str) -> str:
    if value in (None, ""):
        return tell(say("nothing"))
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return f"{text} {tell(unit)}".strip()


def changes(setting: "Setting") -> str:
    if setting.changes:
        return speak("now")
    return speak("the environment holds") if setting.live else speak("with a restart")


def changed(seen: "KnobSeen", _: SimpleNamespace) -> str:
    value = value_of(seen.value, seen.knob.unit)
    return speak("{name} is {value} from now on", name=seen.name, value=value)


def document(seen: "KnobSeen", _: SimpleNamespace) -> dict[str, Any]:
    return {"name": seen.name, "value": seen.value, "source": seen.source}


settings = Noun("settings")
settings.verb(
    "list_settings",
    "list",
    shows=Rows(
        (
            *(say("name"), say("value"), say("source")),
            *(say("changes"), say("changed"), say("what")),
        ),
        lambda each: (
            *(each.name, value_of(each.value, each.unit), tell(str(each.source))),
            *(changes(each), f"{at(each.changed_at)} {each.changed_by or ''}".strip()),
            tell(each.about),
        ),
    ),
    takes={
        "every": Annotated[bool, typer.Option("--all", help="Also those that need a restart.")]
    },
    also=OTHERS,
    prepares=know_knobs,
)
settings.verb(
    "change_setting",
    "set",
    shows=changed,
    document=document,
    takes={
        "value": Annotated[str, typer.Argument(metavar="VALUE", help="`none`: nothing at all.")]
    },
    also=OTHERS,
    prepares=know_knobs,
)
settings.verb(
    "reset_setting", "reset", shows=changed, document=document, also=OTHERS, prepares=know_knobs
)
