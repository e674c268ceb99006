"""What people may enter, checked field by field: missions, workers, proxies, writers, rules of missions."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from fastapi.exceptions import RequestValidationError
from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from retoma.apps.ads import model
from retoma.apps.ads.generator import Pattern
from retoma.apps.ads.model import MediaType
from retoma.apps.ads.store import Sort
from retoma.secret import Secret
from retoma.web.flaws import flaws_of
from retoma.web.problems import Flaw
from retoma.web.wire import Body, Day, Name
from retoma.words import Said, say

MOST_MISSIONS: Final = 1_000  # missions named or added at once
LANGUAGE: Final = r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$"


def language(value: str) -> str:
    if re.fullmatch(LANGUAGE, value) is None:
        raise ValueError(say("is no language such as pt or pt-BR"))
    return value


Tongue = Annotated[
    StrictStr, AfterValidator(language), Field(json_schema_extra={"pattern": LANGUAGE})
]


class NewMission(Body):
    """What is to be scraped."""

    date_start: Day
    date_end: Day
    media_type: MediaType = MediaType.ALL
    languages: Annotated[list[Tongue], Field(min_length=1, max_length=50)]

    @model_validator(mode="after")
    def _in_order(self) -> "NewMission":
        if self.date_end < self.date_start:
            raise ValueError(say("date_end is before date_start"))
        return self

    @property
    def mission(self) -> model.NewMission:
        days = (self.date_start, self.date_end)
        return model.NewMission(*days, self.media_type, tuple(self.languages))


class Ticked(Body):
    """Missions by their ids."""

    missions: Annotated[
        list[Annotated[StrictStr, Field(min_length=1, max_length=100)]],
        Field(min_length=1, max_length=MOST_MISSIONS),
    ]


def list_flaws(error: ValidationError) -> list[Flaw]:
    """Say of each field that is wrong what is wrong with it."""
    return flaws_of(RequestValidationError(error.errors()))


# — workers, proxies, writers —


HOST: Final = r"^[A-Za-z0-9.:_-]+$"


def _whole_url(value: str) -> str:
    parts = _parts(value, say("is no address such as https://worker.example.org"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(say("is no address such as https://worker.example.org"))
    return value.rstrip("/")


def _parts(address: str, why: Said) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as a bracket that nothing closes
        raise ValueError(why) from None


def _host(value: str) -> str:
    if re.fullmatch(HOST, value) is None:
        raise ValueError(say("is no host such as proxy.example.org"))
    return value


def _domain(value: str) -> str:
    parts = _parts(f"//{value}", say("is no host, or host:port"))
    if parts.netloc != value or not parts.hostname or "@" in value or not value.isprintable():
        raise ValueError(say("is no host, or host:port"))
    return value


Url = Annotated[StrictStr, Field(max_length=500), AfterValidator(_whole_url)]
Domain = Annotated[StrictStr, Field(min_length=1, max_length=255), AfterValidator(_domain)]
Key = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Host = Annotated[
    StrictStr,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": HOST}),
    AfterValidator(_host),
]
Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Word = Annotated[StrictStr, Field(min_length=1, max_length=100)]
Vendor = Annotated[StrictStr, Field(max_length=100)]
MOST: Final = 200  # workers, proxies or writers named at once
NULLABLE: Final = {"storage_domain", "port", "username"}
SECRETS: Final = {"api_key", "password"}


class Entered(Body):
    """What is entered of a worker, a proxy or a writer."""

    @property
    def values(self) -> dict[str, Any]:
        """The fields that are entered, by name; keys and passwords as secrets."""
        given = self.model_dump()
        return {
            name: Secret(value) if name in SECRETS and value is not None else value
            for name, value in given.items()
        }


class NewWorker(Entered):
    """A remote scraping service."""

    name: Name
    url: Url
    api_key: Key
    storage_domain: Domain | None = None


class NewProxy(Entered):
    """By which sessions go out."""

    host: Host
    port: Port | None = None
    name: Name | None = None
    username: Word | None = None
    password: Word | None = None
    vendor: Vendor = ""


class NewWriter(Entered):
    """A service that stores ads."""

    name: Name
    url: Url
    api_key: Key


class Changed(Entered):
    """What is to be other than it is; what is not named stays."""

    @model_validator(mode="after")
    def _says_something(self) -> "Changed":
        empty = sorted(
            name for name in self.model_fields_set - NULLABLE if getattr(self, name) is None
        )
        if empty:
            raise ValueError(say("{names}: cannot be nothing", names=", ".join(empty)))
        return self

    @property
    def values(self) -> dict[str, Any]:
        given = super().values
        return {name: given[name] for name in given if name in self.model_fields_set}


class ChangedWorker(Changed):
    """What is to be other of a worker. Its address only while it has no session."""

    name: Name | None = None
    url: Url | None = None
    api_key: Key | None = None
    storage_domain: Domain | None = None


class ChangedProxy(Changed):
    """What is to be other of a proxy. Its address only while no session goes out by it."""

    host: Host | None = None
    port: Port | None = None
    name: Name | None = None
    username: Word | None = None
    password: Word | None = None
    vendor: Vendor | None = None


class ChangedWriter(Changed):
    """What is to be other of a writer. Its address only while it stores nothing."""

    name: Name | None = None
    url: Url | None = None
    api_key: Key | None = None


NEW: Final[Mapping[Sort, type[Entered]]] = {
    Sort.WORKERS: NewWorker,
    Sort.PROXIES: NewProxy,
    Sort.WRITERS: NewWriter,
}
CHANGED: Final[Mapping[Sort, type[Changed]]] = {
    Sort.WORKERS: ChangedWorker,
    Sort.PROXIES: ChangedProxy,
    Sort.WRITERS: ChangedWriter,
}


# — rules of missions —


class Rule(Body):
    """For each language and media type one mission."""

    languages: Annotated[list[Tongue], Field(min_length=1, max_length=50)]
    media_types: Annotated[list[MediaType], Field(min_length=1, max_length=3)] = Field(
        default_factory=lambda: [MediaType.ALL]
    )
    days: Annotated[StrictInt, Field(ge=1, le=366, description="In one mission.")] = 1
    queue: Annotated[StrictBool, Field(description="Add them to the queue too.")] = False

    @property
    def pattern(self) -> Pattern:
        return Pattern(
            languages=tuple(self.languages),
            media_types=tuple(self.media_types),
            days=self.days,
        )


class Generate(Rule):
    """Missions for a range of days."""

    date_start: Day
    date_end: Day
    dry_run: StrictBool = True

    @model_validator(mode="after")
    def _in_order(self) -> "Generate":
        if self.date_end < self.date_start:
            raise ValueError(say("date_end is before date_start"))
        return self


class Recur(Rule):
    """Missions at every tick, for the days before it."""

    name: Annotated[Name, Field(max_length=90)]
    cron: Annotated[StrictStr, Field(max_length=100, examples=["0 6 * * *"])]
    back: Annotated[StrictInt, Field(ge=1, le=366, description="How many days back.")] = 1
    queue: StrictBool = True
