"""Every setting and every knob as it stands, for whoever shows or changes them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import AliasChoices, SecretStr

from retoma import settings
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.rules.live_settings import KnobSeen, Source
from retoma.library import Retoma
from retoma.secret import STARS, redact_text
from retoma.settings import Settings
from retoma.words import say

__all__ = ["KnobSeen", "Setting"]

PREFIX: Final = "RETOMA_"
LIVE: Final = frozenset(each.name for each in settings.LIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One of them, for this process. What is secret in it is stars."""

    name: str
    variable: str | None  # by which the environment says it
    others: tuple[str, ...]  # names of other systems that are heard too
    value: Any
    default: Any
    source: Source
    about: str
    live: bool  # it changes while processes run
    rule: str | None = None  # what it may be, where it is live
    unit: str = ""
    changed_at: datetime | None = None
    changed_by: str | None = None

    @property
    def changes(self) -> bool:
        """An admin may change it now."""
        return self.live and self.source in (Source.DEFAULT, Source.DATABASE)


async def list_settings(app: Retoma, chosen: Settings, *, every: bool = False) -> list[Setting]:
    """What each is, where that comes from, and who changed it."""
    knobs = {each.name: each for each in await app.knobs.all()}
    own = [_own(chosen, name, knobs.pop(name, None)) for name in type(chosen).model_fields]
    seen = [*own, *(_applications(each) for each in knobs.values())]
    return [each for each in seen if every or each.live]


async def change_setting(app: Retoma, name: str, value: object, *, actor: str) -> KnobSeen:
    """Change a knob for all processes, which take it up while they run."""
    return await app.knobs.set(_live(name), value, actor=actor)


async def reset_setting(app: Retoma, name: str, *, actor: str) -> KnobSeen:
    """Its default holds again."""
    return await app.knobs.reset(_live(name), actor=actor)


def _live(given: str) -> str:
    """The name of a knob, if it is one; a setting that is none needs a restart."""
    name = given.removeprefix(PREFIX).lower() if given.startswith(PREFIX) else given
    field = Settings.model_fields.get(name)
    if field is not None and name not in LIVE:
        raise IllegalMove(
            say(
                "{name} is read when a process starts: set {variable} in its environment and"
                " start it again; nothing was changed",
                name=name,
                variable=_names(field.validation_alias)[0],
            )
        )
    return name


def _own(chosen: Settings, name: str, knob: KnobSeen | None) -> Setting:
    about = type(chosen).model_fields[name]
    variable, *others = _names(about.validation_alias)
    fixed = chosen.source(name)
    stands = knob if knob is not None and fixed is Source.DEFAULT else None
    return Setting(
        name=name,
        variable=variable,
        others=tuple(others),
        value=_shown(getattr(chosen, name) if stands is None else stands.value),
        default=_shown(about.default),
        source=fixed if stands is None else stands.source,
        about=about.description or "",
        live=knob is not None,
        rule=None if knob is None else knob.knob.rule,
        unit="" if knob is None else knob.knob.unit,
        changed_at=None if stands is None else stands.changed_at,
        changed_by=None if stands is None else stands.changed_by,
    )


def _applications(seen: KnobSeen) -> Setting:
    return Setting(
        name=seen.name,
        variable=None,
        others=(),
        value=seen.value,
        default=seen.default,
        source=seen.source,
        about=seen.knob.why,
        live=True,
        rule=seen.knob.rule,
        unit=seen.knob.unit,
        changed_at=seen.changed_at,
        changed_by=seen.changed_by,
    )


def _names(alias: Any) -> list[str]:
    return [str(each) for each in alias.choices] if isinstance(alias, AliasChoices) else [alias]


def _shown(value: Any) -> Any:
    """What is secret is told as stars, also inside an address."""
    if isinstance(value, SecretStr):
        return STARS
    if isinstance(value, StrEnum | str):
        return redact_text(str(value)) or None
    return value
