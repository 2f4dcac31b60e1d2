"""Settings: one frozen object, read once from the environment and [tool.farandole], every wrong value named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from farandole.errors import ConfigurationError
from farandole.models.configured import Budgets, Limit
from farandole.project import Project, find_project

PREFIX = "FARANDOLE_"
#: Where `farandole up` writes the addresses of the local stack, below the project's data folder.
ENDPOINTS_FILE = "endpoints.json"

#: Tables in [tool.farandole] that are no settings.
_TABLES_OF_OTHERS = ("demo",)
#: Settings that are tables; in the environment, JSON objects.
_TABLES = ("models", "budgets", "limits")


def _word(value: str) -> str:
    if value and not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", value):
        raise ValueError("expected lower-case letters, digits and _, starting with a letter, at most 31 characters")
    return value


Word = Annotated[str, AfterValidator(_word)]


class Settings(BaseSettings):
    """Everything that can be set, with its default. The environment wins over [tool.farandole], that over defaults: a
    setting that is a table is one value too, and is not mixed from both."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, allow_inf_nan=False, extra="forbid", populate_by_name=True
    )

    kafka_bootstrap_servers: str | None = Field(
        None, validation_alias="KAFKA_BOOTSTRAP_SERVERS", description="host:port of one or more brokers"
    )
    database_url: SecretStr | None = Field(
        None, validation_alias="DATABASE_URL", description="postgresql://user:password@host:port/database"
    )
    schema_registry_url: SecretStr | None = Field(
        None, validation_alias="SCHEMA_REGISTRY_URL", description="https://user:password@host:port, if there is one"
    )
    register_schemas: bool = Field(
        True, description="writers register their schemas; without it `farandole schemas publish` alone does"
    )
    subjects: Literal["topic", "record", "topic-record"] = Field(
        "topic", description="what names a schema's subject in the Schema Registry"
    )
    namespace: Word = Field("", description="prefixes topics, groups, transactional ids and the Postgres schema")
    flow: Word = Field("jobs", min_length=1, description="first part of the names of all event topics")

    partitions: int = Field(6, ge=1, le=10_000, description="of a topic that is created")
    replication: int = Field(1, ge=1, le=32, description="of a topic that is created")
    retention_days: float = Field(30, gt=0, description="of an event topic that is created; dead letters keep for ever")

    create_topics: bool = Field(
        True, description="create missing topics at start; without it a missing topic is an error"
    )

    batch: int = Field(2000, ge=1, le=100_000, description="records a transaction holds at most")
    grace_seconds: float = Field(25, gt=0, description="a drain waits this long for handlers, then abandons them")
    outage_seconds: float = Field(300, gt=0, description="an outage longer than this stops the worker")
    session_timeout_ms: int = Field(10_000, ge=6_000, description="a silent worker loses its partitions after this")
    transaction_timeout_ms: int = Field(
        8_000, ge=1_000, le=60_000, description="a killed worker holds readers this long"
    )
    hop_limit: int = Field(100, ge=1, description="an event that has come this far ends its job as failed: a loop")
    claims: bool = Field(True, description="skip records that carry an event id already claimed by this agent")
    anthropic_api_key: SecretStr | None = Field(
        None,
        validation_alias="ANTHROPIC_API_KEY",
        description="of the Messages API; without one the agents' rules answer",
    )
    anthropic_base_url: str = Field(
        "https://api.anthropic.com", validation_alias="ANTHROPIC_BASE_URL", description="where the Messages API is"
    )
    smtp_url: SecretStr | None = Field(
        None, validation_alias="SMTP_URL", description="smtp://user:password@host:port, for agents that send mails"
    )
    models: dict[str, str] = Field({}, description="names that agents call models by, and the models' ids")
    prices: Path | None = Field(None, description="a TOML file with prices of models, which win over the known ones")
    budgets: Budgets = Field(Budgets(), description="dollars that may be spent on models")
    limits: dict[str, Limit] = Field({}, description="how fast models may be called, by their ids")
    lease_seconds: float = Field(20, ge=2, le=600, description="an effect whose worker died is taken over after this")
    log_json: bool = Field(False, description="log one JSON object a line")
    testcontainers: bool = Field(False, description="tests use Docker containers in place of the local stack")

    @field_validator("schema_registry_url", "anthropic_api_key", "smtp_url", "prices", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """As docker-compose.yml passes on what is not set."""
        return None if value == "" else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings  # what is given to load_settings() comes from files: the environment wins

    def topic(self, name: str) -> str:
        """The topic's name on the broker: `name` behind the namespace."""
        return f"{self.namespace}.{name}" if self.namespace else name

    def bare(self, topic: str) -> str:
        """The topic's name without the namespace."""
        return topic.removeprefix(f"{self.namespace}.") if self.namespace else topic

    def group(self, name: str) -> str:
        """The consumer group (and the stem of transactional ids) of an agent or of the projector."""
        return f"{self.namespace}.{name}" if self.namespace else name

    @property
    def schema_name(self) -> str:
        """The Postgres schema that holds all tables: `farandole`, or `<namespace>_farandole`."""
        return f"{self.namespace}_farandole" if self.namespace else "farandole"

    @property
    def brokers(self) -> str:
        """The bootstrap servers, or a clear error."""
        if not self.kafka_bootstrap_servers:
            raise ConfigurationError(
                "no broker: set KAFKA_BOOTSTRAP_SERVERS (host:port) or start one with `farandole up`"
            )
        return self.kafka_bootstrap_servers

    @property
    def database(self) -> str:
        """The Postgres URL with its password, or a clear error."""
        if not self.database_url:
            raise ConfigurationError("no database: set DATABASE_URL (postgresql://…) or start one with `farandole up`")
        return self.database_url.get_secret_value()


def load_settings(project: Project | None = None, **given: Any) -> Settings:
    """Read the settings of `project` (default: the one around the working folder).

    Addresses come from the environment, else from the running local stack; paths are relative to the project. Raises
    ConfigurationError that names every wrong or unknown setting and what was expected.
    """
    project = project or find_project()
    values: dict[str, Any] = {}
    if project:
        values |= _endpoints(project.data / ENDPOINTS_FILE)
        values |= {key: value for key, value in project.table.items() if key not in _TABLES_OF_OTHERS}
    unknown = [key for key in os.environ if key.startswith(PREFIX) and _field(key) not in Settings.model_fields]
    if unknown:
        raise ConfigurationError(f"unknown setting {', '.join(sorted(unknown))}; known: {', '.join(variables())}")
    values = {key: value for key, value in (values | given).items() if key not in _TABLES or not _variable(key)}
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_sentence(detail) for detail in error.errors())) from None
    except SettingsError:
        raise ConfigurationError(_not_json()) from None
    if project and settings.prices:
        return settings.model_copy(update={"prices": project.root / settings.prices})
    return settings


def variables() -> list[str]:
    """The environment variables that are read, by name."""
    return [str(field.validation_alias or PREFIX + name.upper()) for name, field in Settings.model_fields.items()]


def _field(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower()


def _endpoints(file: Path) -> dict[str, Any]:
    """The running local stack's addresses; {} when it is down. The stack removes the file when it stops."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigurationError(f"{file}: not valid JSON ({error}); run `farandole up` again") from error
    return {
        key: found[key] for key in ("kafka_bootstrap_servers", "database_url", "schema_registry_url") if key in found
    }


def _variable(name: str) -> str | None:
    """The environment's value of a setting that is a table; its name is read in any case, as pydantic-settings does."""
    return next((text for key, text in os.environ.items() if key.upper() == PREFIX + name.upper()), None)


def _not_json() -> str:
    """Which of the settings that are tables holds no JSON."""
    for name in _TABLES:
        try:
            json.loads(_variable(name) or "{}")
        except ValueError as error:
            return f"{PREFIX}{name.upper()}: expected a table of [tool.farandole.{name}] as a JSON object: {error}"
    return "a setting is not valid JSON"


def _sentence(detail: Any) -> str:
    first, *rest = (str(part) for part in detail["loc"]) if detail["loc"] else ("settings",)
    field = Settings.model_fields.get(first)
    name = ".".join([first if first.isupper() else PREFIX + first.upper() if field else first, *rest])
    unknown, value = detail["type"] == "extra_forbidden", detail["input"]
    # A value that may hold a secret is never repeated: a key, a URL, or whatever a misspelt name was meant for.
    hidden = unknown or re.search("url|key", name, re.IGNORECASE) or "://" in str(value)
    if unknown:
        return f"{name}: unknown setting in {name.rpartition('.')[0] or '[tool.farandole]'}"
    return f"{name}: {detail['msg'].removeprefix('Value error, ')}{'' if hidden else f' (given: {value!r})'}"
