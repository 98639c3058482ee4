"""The one configuration file: where it is searched, how it is loaded."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from notewarden import patient
from notewarden import settings_fields as kind
from notewarden.errors import ConfigError
from notewarden.secret_files import placed
from notewarden.settings_errors import explain
from notewarden.settings_sections import (
    AnswererSettings,
    AnswerSettings,
    ChunkingSettings,
    DatabaseSettings,
    DeletesSettings,
    DirectorySettings,
    EmbeddingSettings,
    LogSettings,
    MetricsSettings,
    PriceSettings,
    PrivacySettings,
    RerankSettings,
    RuleSettings,
    ScheduleSettings,
    SearchSettings,
    ShareAclSettings,
    ShareSettings,
)
from notewarden.trust import read_trusted, require_trusted

__all__ = [
    "AnswerSettings",
    "AnswererSettings",
    "ChunkingSettings",
    "DatabaseSettings",
    "DeletesSettings",
    "DirectorySettings",
    "EmbeddingSettings",
    "LogSettings",
    "MetricsSettings",
    "PriceSettings",
    "PrivacySettings",
    "RerankSettings",
    "RuleSettings",
    "ScheduleSettings",
    "SearchSettings",
    "Settings",
    "ShareAclSettings",
    "ShareSettings",
    "find_config",
    "load_settings",
    "parse_settings",
]

_MODEL_WINDOW = 254  # tokens that the local model takes beside [CLS] and [SEP]


def _state_home() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/notewarden")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "notewarden"


class Settings(BaseSettings):
    """The whole configuration, validated. The environment gives secrets only, never one of these values."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    state_dir: kind.OwnPath = Field(default_factory=_state_home)
    database: DatabaseSettings = DatabaseSettings()
    log: LogSettings = LogSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    shares: list[ShareSettings] = Field(default=[], alias="share")
    directory: DirectorySettings = DirectorySettings()
    deletes: DeletesSettings = DeletesSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = Field(default_factory=lambda: EmbeddingSettings.model_validate({}))
    search: SearchSettings = SearchSettings()
    rerank: RerankSettings = RerankSettings()
    answer: AnswerSettings = AnswerSettings()
    answerer: AnswererSettings = AnswererSettings()
    privacy: PrivacySettings = PrivacySettings()
    metrics: MetricsSettings = MetricsSettings()
    _file: Path = PrivateAttr(default=Path("config.toml"))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only the trusted file counts: a variable of the asker's environment must not reconfigure `ask`."""
        return (init_settings,)

    @property
    def file(self) -> Path:
        """The file this configuration was read from."""
        return self._file

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        _require_different_names(self.shares)
        home, *roots = patient.real_paths([self.state_dir, *(share.path for share in self.shares)])
        for share, root in zip(self.shares, roots, strict=True):
            if home.is_relative_to(root):
                raise ValueError(f'state_dir lies inside the share "{share.name}"; move it out of the notes')
        if self.embedding.provider == "local" and self.chunking.max_tokens > _MODEL_WINDOW:
            raise ValueError(f"[chunking] max_tokens may be at most {_MODEL_WINDOW} with the local model")
        self._keep_text_at_home()
        return self

    def _keep_text_at_home(self) -> None:
        """An embedding provider would get every note's text: only shares that say so may be given to one."""
        address = self.embedding.base_url
        if self.embedding.provider != "voyage" or (address and kind.is_loopback(address)):
            return
        for share in self.shares:
            if not share.external:
                raise ValueError(
                    f'[[share]] external must be true for the share "{share.name}" before its text may go to '
                    "[embedding] provider voyage; or use the local model"
                )

    @property
    def trusted_files(self) -> tuple[Path, ...]:
        """The other files whose content decides something: people, a model."""
        named = (self.directory.file, self.directory.ca_file, self.embedding.model_path)
        return tuple(path for path in named if path)

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that hold secrets, of both services."""
        named = [
            self.embedding.api_key_file,
            self.answer.api_key_file,
            self.directory.password_file,
            *(share.acl.password_file for share in self.shares),
        ]
        return tuple(path for path in named if path)


def load_settings(path: Path) -> Settings:
    """Return the configuration in `path`, wholly validated.

    The file, and each people, secret and model file it names, must pass `require_trusted` and lie outside
    every share; a secret in a folder that is closed to this account is for another service to check.
    Raises ConfigError naming file, section and key, with the remedy.
    """
    path = path.absolute()
    settings = parse_settings(_parse_toml(path, read_trusted(path)), path)
    roots = [share.path for share in settings.shares]
    for file in (path, *settings.trusted_files):
        require_trusted(file, roots)
    for file in settings.secret_files:
        copy = placed(file)
        if _is_reachable(copy):
            require_trusted(copy, roots)
    return settings


def _is_reachable(secret: Path) -> bool:
    """Whether this account sees the secret at all: one of the other service's is none of its business."""
    try:
        secret.stat()
    except PermissionError:
        return False
    except OSError:
        return True
    return True


def parse_settings(data: Mapping[str, Any], path: Path) -> Settings:
    """Return the settings that the TOML table `data`, read from `path`, stands for. Raises ConfigError."""
    marker = kind.BASE_FOLDER.set(path.absolute().parent)
    try:
        settings = Settings(**data)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error, data, Settings)}") from None
    finally:
        kind.BASE_FOLDER.reset(marker)
    settings._file = path
    return settings


def find_config(explicit: Path | None = None) -> Path:
    """Return the configuration to use: `explicit`, $NOTEWARDEN_CONFIG, then the usual places, first found.

    ./config.toml is not looked at by root, who may stand in anybody's folder. Raises ConfigError if there is
    none, or the one that was named does not exist.
    """
    named = explicit or (
        Path(os.environ["NOTEWARDEN_CONFIG"]) if os.environ.get("NOTEWARDEN_CONFIG") else None
    )
    if named:
        if not patient.is_file(named):
            raise ConfigError(
                f"There is no configuration {named}; `notewarden init --notes PATH` writes one."
            )
        return named.absolute()
    places = _usual_places()
    for place in places:
        if patient.is_file(place):
            return place.absolute()
    looked = ", ".join(str(place) for place in places)
    raise ConfigError(
        f"There is no configuration (looked at {looked}); `notewarden init --notes PATH` writes one, "
        "--config FILE names one."
    )


def _usual_places() -> tuple[Path, ...]:
    places = [Path("~/.config/notewarden/config.toml").expanduser(), Path("/etc/notewarden/config.toml")]
    if os.geteuid() != 0:
        places.insert(0, Path("config.toml"))
    return tuple(places)


def _parse_toml(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (at byte {error.start}); save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def _require_different_names(shares: Sequence[ShareSettings]) -> None:
    for name, times in Counter(share.name for share in shares).items():
        if times > 1:
            raise ValueError(f'[[share]] name: two shares are called "{name}"; give each its own name')
