"""Every knob: its default, its unit, its reason. Read from the environment, prefix RETOMA_.

Lengths of time are seconds, or text such as `90s` and `1m30s`. The names other systems gave to
the same knobs are heard too. What contradicts itself does not start.
"""

import re
from enum import StrEnum
from functools import reduce
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from retoma.access.access import ENV_KEY
from retoma.access.token import LONGEST
from retoma.blob_stores import DATABASE, open_blob_store
from retoma.db.migrations import PublicViews
from retoma.engine.ops import alerts, retention
from retoma.engine.ops.loop_watchdog import LOOP_LIMIT
from retoma.engine.ops.retention import Keep
from retoma.engine.ops.schedules import TIMEZONE
from retoma.engine.rules.cron import Cron
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.live_settings import Knob, Source
from retoma.engine.run.heartbeat import BEAT, BEATS, LEASE
from retoma.engine.run.runner_options import GRACE, LET_GO, STEP_MEMORY, TICK
from retoma.secret import known
from retoma.words import Language, Said, say

SCHEMES = ("sqlite", "postgresql", "postgres")
LIVE = (*alerts.KNOBS, *retention.KNOBS)
KEY_IN_PATH = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{20,}")
SHORTEST_KEY = 12  # characters of one in an address; what is shorter stands in other words too
MOST_SLOTS = 10_000  # jobs at a time in one process; beyond it the loop is the limit


class LogLevel(StrEnum):
    """How much a runner tells. A line for every job that ends well is `debug`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Store(StrEnum):
    """Where vectors are compared."""

    AUTO = "auto"  # pgvector where the database has it, else memory
    MEMORY = "memory"
    PGVECTOR = "pgvector"


def _length(value: Any) -> float:
    try:
        number = float(value)  # a bare number in the environment is seconds
    except (TypeError, ValueError):
        return seconds(value)
    return seconds(number)


def _read_length(value: Any) -> float:
    try:
        length = _length(value)
    except BadInput as error:
        raise ValueError(*error.args) from error
    if not 0 < length < float("inf"):
        raise ValueError(say("a length of time here is more than nothing, and finite"))
    return length


def _read_limit(value: Any) -> float:
    return 0.0 if str(value).strip() in ("0", "0.0", "0s") else _read_length(value)


Seconds = Annotated[float, BeforeValidator(_read_length)]
SecondsOrNone = Annotated[float, BeforeValidator(_read_limit)]


def _named(*names: str) -> AliasChoices:
    return AliasChoices(*names)


def _live(knob: Knob, **bounds: Any) -> Any:
    """One that people may change in the database too, where the environment does not say it."""
    alias = f"RETOMA_{knob.name.upper()}"
    return Field(knob.default, validation_alias=alias, description=knob.why, **bounds)


class Settings(BaseSettings):
    """What one process of ours may be told from outside."""

    model_config = SettingsConfigDict(
        extra="ignore", frozen=True, populate_by_name=True, env_ignore_empty=True
    )

    database_url: str = Field(
        "sqlite:///retoma.db",
        validation_alias=_named("RETOMA_DATABASE_URL", "DATABASE_URL"),
        description=say("Where jobs live. A file in this folder: works with no server at all."),
    )
    slots: int = Field(
        100,
        ge=1,
        le=MOST_SLOTS,
        validation_alias="RETOMA_SLOTS",
        description=say(
            "Jobs at a time in one process. Stories mostly wait; a hundred fit a core."
        ),
    )
    lease: Seconds = Field(
        LEASE,
        validation_alias="RETOMA_LEASE",
        description=say("How long a silent runner keeps its jobs: six beats."),
    )
    beat: Seconds = Field(
        BEAT,
        validation_alias="RETOMA_BEAT",
        description=say("How often a runner says that it lives: one row, however many jobs."),
    )
    tick: Seconds = Field(
        TICK,
        validation_alias="RETOMA_TICK",
        description=say("How often everything is looked at, even if no bell rings."),
    )
    grace: Seconds = Field(
        GRACE,
        validation_alias="RETOMA_GRACE",
        description=say(
            "How long a leaving runner lets its jobs finish; deploy tools kill after 30."
        ),
    )
    let_go: Seconds = Field(
        LET_GO,
        validation_alias="RETOMA_LET_GO",
        description=say(
            "How long a story that was stopped may take to end; then it is left behind."
        ),
    )
    loop_limit: SecondsOrNone = Field(
        LOOP_LIMIT,
        validation_alias="RETOMA_LOOP_LIMIT",
        description=say(
            "How long the loop may be held before the process leaves; 0: for ever."
        ),
    )
    stop_stalled: bool = Field(
        False,
        validation_alias="RETOMA_STOP_STALLED",
        description=say(
            "Whether a stalled job is also stopped and has failed; else it is only marked."
        ),
    )
    step_memory: int = Field(
        STEP_MEMORY,
        ge=1,
        validation_alias="RETOMA_STEP_MEMORY",
        description=say("Bytes of saved step values that one runner reads back at a time."),
    )
    runner_name: str = Field(
        "runner",
        min_length=1,
        max_length=100,
        validation_alias=_named("RETOMA_RUNNER_NAME", "WORKER_ID"),
        description=say(
            "What people call this runner. Its identity is its boot, made anew each time."
        ),
    )
    host: str = Field(
        "",
        max_length=100,
        validation_alias="RETOMA_HOST",
        description=say(
            "What this machine is called; clones of one image tell themselves apart by it."
        ),
    )
    log_level: LogLevel = Field(
        LogLevel.INFO,
        validation_alias="RETOMA_LOG_LEVEL",
        description=say("How much a runner tells; `debug` has a line for every job."),
    )
    language: Language | None = Field(
        None,
        validation_alias="RETOMA_LANGUAGE",
        description=say(
            "`en` or `pt_BR`: what the programs say to people; else as the locale is."
        ),
    )
    evidence: str = Field(
        DATABASE,
        validation_alias="RETOMA_EVIDENCE",
        description=say(
            "Where evidence lies: `database`, `folder:///path` or"
            " `s3://bucket/prefix?endpoint=…`."
        ),
    )
    timezone: str = Field(
        TIMEZONE,
        validation_alias="RETOMA_TIMEZONE",
        description=say(
            "Whose clock schedules go by that name no time zone of their own, and costs."
        ),
    )
    serve_host: str = Field(
        "127.0.0.1",
        min_length=1,
        max_length=255,
        validation_alias="RETOMA_SERVE_HOST",
        description=say(
            "Where the API listens. Beyond this machine only where there are keys."
        ),
    )
    serve_port: int = Field(
        8321,
        ge=0,
        le=65_535,
        validation_alias="RETOMA_SERVE_PORT",
        description=say("The port of the API; 0: a free one."),
    )
    public_url: str | None = Field(
        None,
        validation_alias="RETOMA_PUBLIC_URL",
        description=say("What people type to reach the API, where a proxy stands before it."),
    )
    trusted_proxies: str = Field(
        "",
        validation_alias="RETOMA_TRUSTED_PROXIES",
        description=say(
            "Addresses or networks, separated by commas, from which many people come: no bound per"
            " address there. This machine is always one."
        ),
    )
    serve_connections: int = Field(
        1_000,
        ge=20,
        le=100_000,
        validation_alias="RETOMA_SERVE_CONNECTIONS",
        description=say(
            "Connections of the API at most, fewer where this process may open fewer files; clients"
            " that have not signed in take three quarters of them at most."
        ),
    )
    serve_connections_each: int = Field(
        100,
        ge=1,
        le=100_000,
        validation_alias="RETOMA_SERVE_CONNECTIONS_EACH",
        description=say("Connections of one address at most."),
    )
    streams: int = Field(
        200,
        ge=1,
        le=100_000,
        validation_alias="RETOMA_STREAMS",
        description=say("Live streams of the API that may be open at once, pages included."),
    )
    streams_each: int = Field(
        20,
        ge=1,
        le=100_000,
        validation_alias="RETOMA_STREAMS_EACH",
        description=say("The same, of one person."),
    )
    api_key: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_API_KEY",
        description=say(
            "A key that is an admin's, for a first start and for automation; 32 characters"
            " at least."
        ),
    )
    secret_key: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_SECRET_KEY",
        description=say(
            "What seals secrets: 32 bytes in base64; several, and the first one seals. Else"
            " it lies in a file."
        ),
    )
    secret_key_file: str | None = Field(
        None,
        validation_alias="RETOMA_SECRET_KEY_FILE",
        description=say(
            "Where that file is; else beside the database, or in this user's data folder."
        ),
    )
    private_hosts: str = Field(
        "",
        validation_alias="RETOMA_PRIVATE_HOSTS",
        description=say(
            "Hosts, with commas between them, that may be called at private addresses by the"
            " purposes that name them. Everything else private is refused."
        ),
    )
    public_views: PublicViews = Field(
        PublicViews.AUTO,
        validation_alias="RETOMA_PUBLIC_VIEWS",
        description=say(
            "Whether schema public shows the tables of a design document: auto (where nothing else"
            " is in it), on or off. PostgreSQL."
        ),
    )
    applications: str = Field(
        "",
        pattern=r"^([a-z][a-z0-9_-]*(,[a-z][a-z0-9_-]*)*)?$",
        validation_alias="RETOMA_APPLICATIONS",
        description=say(
            "Applications that this process takes in, with commas between them: `ads`, `documents`,"
            " `embeddings`, `matches`, `quotes`, and those of packages that name theirs in `retoma.apps`."
        ),
    )
    anthropic_url: str = Field(
        "https://api.anthropic.com",
        validation_alias=_named("RETOMA_ANTHROPIC_URL", "ANTHROPIC_BASE_URL"),
        description=say("Where Anthropic's models answer; quotes are analysed there."),
    )
    anthropic_key: SecretStr | None = Field(
        None,
        validation_alias=_named("RETOMA_ANTHROPIC_KEY", "ANTHROPIC_API_KEY"),
        description=say("Our key there."),
    )
    anthropic_model: str = Field(
        "claude-haiku-5-5",
        min_length=1,
        max_length=100,
        validation_alias="RETOMA_ANTHROPIC_MODEL",
        description=say("Which model analyses."),
    )
    serpapi_url: str = Field(
        "https://serpapi.com",
        validation_alias="RETOMA_SERPAPI_URL",
        description=say("Where SerpAPI answers: searches in Google Shopping."),
    )
    serpapi_key: SecretStr | None = Field(
        None,
        validation_alias=_named("RETOMA_SERPAPI_KEY", "SERPAPI_API_KEY"),
        description=say("Our key there."),
    )
    fipe_url: str = Field(
        "https://parallelum.com.br",
        validation_alias="RETOMA_FIPE_URL",
        description=say("Where the FIPE table answers: what vehicles are worth."),
    )
    shop_hosts: str = Field(
        "*",
        max_length=2_000,
        validation_alias="RETOMA_SHOP_HOSTS",
        description=say(
            "Shops whose pages quotes may look at, with commas between them; `*`: any public"
            " one. One of our own is named as host:port."
        ),
    )
    screenshots: str = Field(
        "auto",
        pattern="^(auto|off)$",
        validation_alias="RETOMA_SCREENSHOTS",
        description=say(
            "Pictures of the pages whose prices quotes accept: `auto`, where `retoma[browser]` is"
            " installed, or `off`. The pages themselves are always kept."
        ),
    )
    chromium: str | None = Field(
        None,
        validation_alias="RETOMA_CHROMIUM",
        description=say(
            "The Chromium that draws them; else one on the PATH, else the one that playwright"
            " has installed."
        ),
    )
    matches_url: str = Field(
        "https://jogos.example",
        validation_alias="RETOMA_MATCHES_URL",
        description=say("Where the pages of rounds and matches are: the site you may scrape."),
    )
    matches_webhook: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_MATCHES_WEBHOOK",
        description=say("Where it is posted that a round is complete; it may hold a key."),
    )
    matches_proxy_password: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_MATCHES_PROXY_PASSWORD",
        description=say(
            "What proxies that name a user ask for, where matches are fetched through a pool of them."
        ),
    )
    openrouter_url: str = Field(
        "https://openrouter.ai/api/v1",
        validation_alias=_named("RETOMA_OPENROUTER_URL", "OPENROUTER_BASE_URL"),
        description=say("Where OpenRouter's models answer; documents are classified there."),
    )
    openrouter_key: SecretStr | None = Field(
        None,
        validation_alias=_named("RETOMA_OPENROUTER_KEY", "OPENROUTER_API_KEY"),
        description=say("Our key there."),
    )
    openrouter_model: str = Field(
        "google/gemini-2.5-flash",
        min_length=1,
        max_length=100,
        validation_alias="RETOMA_OPENROUTER_MODEL",
        description=say("Which model classifies, where a project names none."),
    )
    openrouter_fallbacks: str = Field(
        "",
        max_length=500,
        validation_alias="RETOMA_OPENROUTER_FALLBACKS",
        description=say(
            "Models that are asked where that one is away, with commas between them."
        ),
    )
    embeddings_provider: str = Field(
        "ngrams",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$",
        validation_alias="RETOMA_EMBEDDINGS_PROVIDER",
        description=say(
            "Who makes vectors of texts: `ngrams`, our own, offline; `openai`, any endpoint that"
            " speaks as OpenAI's does; `cohere`; `voyage`; `local`, a model on this machine by"
            " `retoma[local]`; or one that a package names in `retoma.embeddings.providers`."
        ),
    )
    embeddings_url: str | None = Field(
        None,
        validation_alias="RETOMA_EMBEDDINGS_URL",
        description=say(
            "Where that service is, without `/embeddings` or `/embed`; none: where its maker has it."
        ),
    )
    embeddings_key: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_EMBEDDINGS_KEY",
        description=say("Our key there; none for one that asks for none."),
    )
    embeddings_model: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        validation_alias="RETOMA_EMBEDDINGS_MODEL",
        description=say(
            "Which of its models embeds; none: `text-embedding-3-small` of openai, `embed-v4.0` of"
            " cohere, `voyage-3.5` of voyage, `paraphrase-multilingual-MiniLM-L12-v2` of local."
        ),
    )
    embeddings_dims: int | None = Field(
        None,
        ge=1,
        le=4096,
        validation_alias="RETOMA_EMBEDDINGS_DIMS",
        description=say(
            "How many numbers a vector of that model has; none: as many as that default has."
        ),
    )
    embeddings_dimensions: int | None = Field(
        None,
        ge=1,
        le=4096,
        validation_alias="RETOMA_EMBEDDINGS_DIMENSIONS",
        description=say(
            "How many numbers the service is asked to shorten its vectors to; none: it is not asked."
        ),
    )
    embeddings_batch: int | None = Field(
        None,
        ge=1,
        le=2048,
        validation_alias="RETOMA_EMBEDDINGS_BATCH",
        description=say(
            "Texts of one request, where the provider's own batch size is not right."
        ),
    )
    embeddings_tokens: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        validation_alias="RETOMA_EMBEDDINGS_TOKENS",
        description=say("Tokens that the model takes of one text; a longer text is refused."),
    )
    embeddings_folder: str | None = Field(
        None,
        max_length=500,
        validation_alias="RETOMA_EMBEDDINGS_FOLDER",
        description=say("Where the files of a `local` model are; they are never downloaded."),
    )
    openai_url: str | None = Field(
        None,
        validation_alias="OPENAI_BASE_URL",
        description=say("RETOMA_EMBEDDINGS_URL, under the name that OpenAI gave it."),
    )
    openai_key: SecretStr | None = Field(
        None,
        validation_alias="OPENAI_API_KEY",
        description=say("RETOMA_EMBEDDINGS_KEY, for `openai` alone."),
    )
    cohere_key: SecretStr | None = Field(
        None,
        validation_alias=_named("COHERE_API_KEY", "CO_API_KEY"),
        description=say("RETOMA_EMBEDDINGS_KEY, for `cohere` alone."),
    )
    voyage_key: SecretStr | None = Field(
        None,
        validation_alias="VOYAGE_API_KEY",
        description=say("RETOMA_EMBEDDINGS_KEY, for `voyage` alone."),
    )
    embeddings_store: Store = Field(
        Store.AUTO,
        validation_alias="RETOMA_EMBEDDINGS_STORE",
        description=say(
            "Where search compares vectors: `auto`, by pgvector where the database has that extension,"
            " else in memory; `memory`; or `pgvector`, which fails where it is not there."
        ),
    )
    embeddings_memory: int = Field(
        512_000_000,
        ge=1_000_000,
        validation_alias="RETOMA_EMBEDDINGS_MEMORY",
        description=say("Bytes of vectors that search may keep in memory, in each process."),
    )
    embeddings_webhook: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_EMBEDDINGS_WEBHOOK",
        description=say(
            "Where it is posted that all documents of a submission have ended; it may hold a key."
        ),
    )
    document_folders: str = Field(
        "",
        max_length=2_000,
        validation_alias="RETOMA_DOCUMENT_FOLDERS",
        description=say(
            "Folders of this server that documents may be taken from, with commas between"
            " them; else none."
        ),
    )
    traces: str = Field(
        "",
        pattern="^(otlp|console)?$",
        validation_alias="RETOMA_TRACES",
        description=say(
            "Where spans go: `otlp`, as OTEL_EXPORTER_OTLP_ENDPOINT says, or `console`; else"
            " nowhere. Needs `retoma[otel]`."
        ),
    )
    alert_webhook: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_ALERT_WEBHOOK",
        description=say(
            "Where alerts are posted: an address, or the place of one, `env:NAME` or"
            " `file:/path`."
        ),
    )
    alert_webhook_shape: str = Field(
        "plain",
        pattern="^(plain|slack|teams)$",
        validation_alias="RETOMA_ALERT_WEBHOOK_SHAPE",
        description=say("Who reads what is posted: `plain` JSON, `slack` or `teams`."),
    )
    alert_webhook_secret: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_ALERT_WEBHOOK_SECRET",
        description=say(
            "What posts are signed with; or its place, `env:NAME` or `file:/path`."
        ),
    )
    alert_email: str = Field(
        "",
        max_length=2_000,
        validation_alias="RETOMA_ALERT_EMAIL",
        description=say("Who gets letters about alerts: addresses, with commas between them."),
    )
    smtp_host: str | None = Field(
        None,
        validation_alias="RETOMA_SMTP_HOST",
        description=say("The server that takes letters."),
    )
    smtp_port: int = Field(
        587,
        ge=1,
        le=65_535,
        validation_alias="RETOMA_SMTP_PORT",
        description=say("Its port."),
    )
    smtp_tls: str = Field(
        "starttls",
        pattern="^(starttls|tls|none)$",
        validation_alias="RETOMA_SMTP_TLS",
        description=say("How the way to it is kept private: `starttls`, `tls`, or `none`."),
    )
    smtp_from: str | None = Field(
        None,
        validation_alias="RETOMA_SMTP_FROM",
        description=say("Whose address stands on the letters."),
    )
    smtp_user: str | None = Field(
        None,
        validation_alias="RETOMA_SMTP_USER",
        description=say("Who we are to that server, where it asks."),
    )
    smtp_password: SecretStr | None = Field(
        None,
        validation_alias="RETOMA_SMTP_PASSWORD",
        description=say("Our password there; or its place, `env:NAME` or `file:/path`."),
    )
    alert_stuck: int = _live(alerts.STUCK, ge=0, le=1_000_000)
    alert_slow: Seconds = _live(alerts.SLOW)
    alert_no_beat: Seconds = _live(alerts.NO_BEAT)
    alert_breaker_open: SecondsOrNone = _live(alerts.BREAKER_OPEN)
    alert_stale: Seconds = _live(alerts.STALE)
    keep_done: Seconds | None = _live(retention.DONE)
    keep_dead: Seconds | None = _live(retention.DEAD)
    keep_events: Seconds | None = _live(retention.EVENTS)
    keep_reuse: Seconds | None = Field(
        None,
        validation_alias="RETOMA_KEEP_REUSE",
        description=say("How long the result of a step may be used again by other jobs."),
    )
    lease_ms: int | None = Field(
        None,
        ge=1,
        validation_alias="JOB_LOCK_TTL_MS",
        description=say("The lease in milliseconds, by its older name."),
    )
    beat_ms: int | None = Field(
        None,
        ge=1,
        validation_alias="JOB_HEARTBEAT_INTERVAL_MS",
        description=say("The beat in milliseconds, by its older name."),
    )

    _given: frozenset[str] = PrivateAttr(default=frozenset())

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._given = frozenset(given)

    def source(self, name: str) -> Source:
        """Who says what this knob is."""
        if name in self._given:
            return Source.GIVEN
        heard = {name, f"{name}_ms"} & self.model_fields_set
        return Source.ENVIRONMENT if heard else Source.DEFAULT

    @property
    def fixed(self) -> dict[str, Any]:
        """Of what people may change while it runs: what this process was told at its start."""
        return {
            each.name: getattr(self, each.name)
            for each in LIVE
            if self.source(each.name) is not Source.DEFAULT
        }

    @field_validator("database_url")
    @classmethod
    def _known_scheme(cls, url: str) -> str:
        scheme = urlsplit(url).scheme
        if scheme not in SCHEMES:
            # Never the whole of it: it may hold a password.
            raise ValueError(
                say(
                    "{scheme} is no database of ours: write sqlite:///work.db or"
                    " postgresql://host/name",
                    scheme=scheme or say("an address without a scheme"),
                )
            )
        return url

    @field_validator("public_url")
    @classmethod
    def _an_origin(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://x")
        bare = parts.path in ("", "/") and not parts.query and not parts.fragment
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or not bare
            or parts.username
        ):
            raise ValueError(say("write where people go, such as https://retoma.example.org"))
        return url

    @model_validator(mode="after")
    def _keys_in_addresses(self) -> "Settings":
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, str):
                _hide_keys(value)
        return self

    @field_validator("api_key")
    @classmethod
    def _long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not ENV_KEY <= len(key.get_secret_value()) <= LONGEST:
            raise ValueError(
                say(
                    "a key that can be guessed opens everything: give {least} to {most} characters,"
                    " or none",
                    least=ENV_KEY,
                    most=LONGEST,
                )
            )
        return key

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, given: str) -> str:
        try:
            networks_of(given)
        except ValueError:
            raise ValueError(
                say("write addresses or networks, such as 10.0.0.7, 192.168.1.0/24")
            ) from None
        return given

    @field_validator("evidence")
    @classmethod
    def _known_shelf(cls, where: str) -> str:
        try:
            open_blob_store(where)
        except BadInput as error:
            raise ValueError(str(error)) from error
        return where

    @field_validator("private_hosts")
    @classmethod
    def _known_hosts(cls, hosts: str) -> str:
        if not hosts:
            return hosts
        # Else every verb of the command line would wait for a client that it never uses.
        from retoma.outbound.policy import private_hosts  # noqa: PLC0415

        try:
            private_hosts(hosts)
        except BadInput as error:
            raise ValueError(*error.args) from error
        return hosts

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, timezone: str) -> str:
        try:
            return Cron("0 0 * * *", timezone).timezone
        except BadInput as error:
            raise ValueError(*error.args) from error

    @model_validator(mode="before")
    @classmethod
    def _lower_level(cls, given: Any) -> Any:
        level = given.get("RETOMA_LOG_LEVEL") if isinstance(given, dict) else None
        return {**given, "RETOMA_LOG_LEVEL": level.lower()} if isinstance(level, str) else given

    @field_validator("language", mode="before")
    @classmethod
    def _known_language(cls, language: Any) -> Any:
        """`pt-BR`, `pt` and `en_US` mean what they seem to mean."""
        short = str(language)[:2].lower()
        return {"pt": Language.PT_BR, "en": Language.EN}.get(short, language)

    @model_validator(mode="after")
    def _fold_milliseconds(self) -> "Settings":
        for name, older, alias in (
            ("lease", self.lease_ms, "JOB_LOCK_TTL_MS"),
            ("beat", self.beat_ms, "JOB_HEARTBEAT_INTERVAL_MS"),
        ):
            if older is None:
                continue
            if name in self.model_fields_set and getattr(self, name) != older / 1000:
                raise ValueError(
                    say(
                        "{ours} ({given:g} s) and {theirs} ({older:g} s) contradict each other:"
                        " give one of them",
                        ours=f"RETOMA_{name.upper()}",
                        given=getattr(self, name),
                        theirs=alias,
                        older=older / 1000,
                    )
                )
            # Frozen from outside; this is still the making of it.
            object.__setattr__(self, name, older / 1000)
        return self

    @property
    def openrouter_models(self) -> tuple[str, ...]:
        """The model that classifies, and who stands in for it, in their order."""
        others = (each.strip() for each in self.openrouter_fallbacks.split(","))
        return (self.openrouter_model, *filter(None, others))

    @property
    def keep(self) -> Keep:
        return Keep(
            done=self.keep_done,
            dead=self.keep_dead,
            events=self.keep_events,
            reuse=self.keep_reuse,
        )

    @model_validator(mode="after")
    def _one_secret_key(self) -> "Settings":
        if self.secret_key is not None and self.secret_key_file is not None:
            raise ValueError(
                say(
                    "RETOMA_SECRET_KEY and RETOMA_SECRET_KEY_FILE contradict each other: give one"
                    " of them"
                )
            )
        return self

    @model_validator(mode="after")
    def _letters_have_a_way(self) -> "Settings":
        if self.alert_email and (self.smtp_host is None or self.smtp_from is None):
            raise ValueError(
                say("RETOMA_ALERT_EMAIL needs RETOMA_SMTP_HOST and RETOMA_SMTP_FROM")
            )
        return self

    @model_validator(mode="after")
    def _keep_events_longest(self) -> "Settings":
        for name in ("keep_done", "keep_dead"):
            jobs = getattr(self, name)
            if None not in (jobs, self.keep_events) and jobs > self.keep_events:
                raise ValueError(
                    say(
                        "{ours} ({jobs:g} s) and RETOMA_KEEP_EVENTS ({events:g} s) contradict each"
                        " other: events outlive the job they tell of",
                        ours=f"RETOMA_{name.upper()}",
                        jobs=jobs,
                        events=self.keep_events,
                    )
                )
        return self

    @model_validator(mode="after")
    def _agree(self) -> "Settings":
        lease = "RETOMA_LEASE" if self.lease_ms is None else "JOB_LOCK_TTL_MS"
        beat = "RETOMA_BEAT" if self.beat_ms is None else "JOB_HEARTBEAT_INTERVAL_MS"
        if self.beat * BEATS > self.lease:
            raise ValueError(
                say(
                    "{lease} ({has:g} s) and {beat} ({every:g} s) contradict each other: a lease"
                    " outlasts {beats} beats, or one late beat loses every job",
                    lease=lease,
                    has=self.lease,
                    beat=beat,
                    every=self.beat,
                    beats=BEATS,
                )
            )
        if self.tick >= self.lease:
            raise ValueError(
                say(
                    "RETOMA_TICK ({every:g} s) and {lease} ({has:g} s) contradict each other: what a"
                    " lease lets go must be seen before the next one ends",
                    every=self.tick,
                    lease=lease,
                    has=self.lease,
                )
            )
        return self


def _hide_keys(url: str) -> None:
    """Whoever logs or shows an address must not tell the key in it: its user, its password, a value of its
    query, or a long part of its path."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return
    named = [unquote(each or "") for each in (parts.username, parts.password)]
    values = [*named, *(value for _, value in parse_qsl(parts.query))]
    places = (unquote(each) for each in parts.path.split("/"))
    for each in (
        *(value for value in values if len(value) >= SHORTEST_KEY),
        *(place for place in places if KEY_IN_PATH.fullmatch(place)),
    ):
        known.add(each)


def networks_of(given: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks, separated by commas."""
    return tuple(ip_network(each.strip()) for each in given.split(",") if each.strip())


def read(**given: Any) -> Settings:
    """The environment, and over it what was given here and is not None; else BadInput."""
    said = {name: value for name, value in given.items() if value is not None}
    try:
        return Settings(**said)
    except ValidationError as error:
        told = [_told(each) for each in error.errors()]
        raise BadInput(reduce(lambda a, b: say("{a}; {b}", a=a, b=b), told)) from error


def _told(error: Any) -> Said:
    where = ".".join(str(part) for part in error["loc"])
    ours = error.get("ctx", {}).get("error")
    message = ours.args[0] if isinstance(ours, ValueError) else error["msg"]
    if not where:
        return say("{message}", message=message)
    return say("{where}: {message}", where=where, message=message)
