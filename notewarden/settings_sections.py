"""The sections of the configuration, one class each: every key, its type and its default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from notewarden import settings_fields as kind

_DEFAULT_MODEL = {"local": ("all-MiniLM-L6-v2", 384), "voyage": ("voyage-4", 1024), "hash": ("hash", 384)}
_DEFAULT_ACL_MODEL = {"posix": "posix", "declared": "declared", "nfs4": "nfs4"}

AclModel = Literal["nt", "posix", "nt+posix", "nfs4", "declared"]
Guards = Literal["bypass", "posix_x", "nt_traverse", "listable"]


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class DatabaseSettings(Section):
    """`[database]`: our own server in `state_dir`, or an external one."""

    url: kind.DatabaseUrl = "embedded"
    reader_url: kind.ReaderUrl = None

    @model_validator(mode="after")
    def _one_server(self) -> DatabaseSettings:
        if self.url == "embedded" and self.reader_url:
            raise ValueError("reader_url belongs to an external server; remove it, or set url too")
        return self


class LogSettings(Section):
    """`[log]`."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "human", "json"] = "auto"


class ScheduleSettings(Section):
    """`[schedule]`: how often shares are polled, permissions swept, everything hashed anew; what is kept."""

    poll: kind.Duration = kind.parse_duration("5m")
    acl: kind.DurationOrPoll = "poll"
    verify: kind.Daily = kind.parse_daily("daily 03:00")
    keep_runs: kind.Duration = kind.parse_duration("90d")
    keep_audit: kind.Duration = kind.parse_duration("400d")
    keep_usage: kind.Duration = kind.parse_duration("800d")


class RuleSettings(Section):
    """`[[share.acl.rule]]`: who reads a folder and all below it. `folder` is relative, "" is the root."""

    folder: kind.Folder
    readers: list[kind.Name]
    denied: list[kind.Name] = []


class ShareAclSettings(Section):
    """`[share.acl]`: where the permissions of a share come from and what they mean."""

    source: Literal["smb", "posix", "nfs4", "cifs", "declared"]
    model: AclModel | None = None
    guards: Guards | None = None
    server: str = ""
    port: Annotated[int, Field(ge=1, le=65535)] = 445
    share: str = ""
    admin_share: str = ""
    username: str = ""
    password_file: kind.OptionalPath = None
    client: Literal["auto", "pysmb", "smbprotocol"] = "auto"
    require_signing: StrictBool = False
    posix_path: kind.OptionalPath = None
    same_ids: StrictBool = False
    share_readers: list[kind.Name] | None = None
    share_denied: list[kind.Name] | None = None
    read_mask: Literal["generic_read", "read_data"] = "generic_read"
    null_dacl: Literal["quarantine", "everyone"] = "quarantine"
    max_age: kind.Duration = kind.parse_duration("24h")
    rules: list[RuleSettings] = Field(default=[], alias="rule")

    @model_validator(mode="before")
    @classmethod
    def _fill_by_source(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        source = data.get("source")
        filled = {"guards": "bypass" if source == "declared" else "posix_x", **data}
        if source in _DEFAULT_ACL_MODEL:
            filled.setdefault("model", _DEFAULT_ACL_MODEL[source])
        return filled

    @model_validator(mode="after")
    def _fits_source(self) -> ShareAclSettings:
        if self.model is None:
            raise ValueError(f'model must be said for source = "{self.source}": nt, posix, nt+posix or nfs4')
        if self.source in _DEFAULT_ACL_MODEL and self.model != _DEFAULT_ACL_MODEL[self.source]:
            raise ValueError(
                f'model must be "{_DEFAULT_ACL_MODEL[self.source]}" with source = "{self.source}"'
            )
        if self.rules and self.source != "declared":
            raise ValueError(
                'rule counts only with source = "declared"; remove the rules or change the source'
            )
        self._require_different_folders()
        return self

    def _require_different_folders(self) -> None:
        for folder, times in Counter(rule.folder for rule in self.rules).items():
            if times > 1:
                raise ValueError(f'two rules are for the folder "{folder}"; join them')


class ShareSettings(Section):
    """`[[share]]`: one folder of notes."""

    name: kind.ShareName
    path: kind.ShareRoot
    link: kind.Link = None
    include: Annotated[list[kind.Name], Field(min_length=1)] = ["**/*.md"]
    exclude: list[kind.Name] = []
    max_bytes: Annotated[int, Field(ge=1, le=1_000_000_000)] = 4_000_000
    max_chunks: Annotated[int, Field(ge=1, le=1_000_000)] = 2_000
    watch: StrictBool = False
    external: StrictBool = False
    acl: ShareAclSettings


class DirectorySettings(Section):
    """`[directory]`: where users and groups are looked up.

    `url`, `base` and `ca_file` are those of a domain (ldap), `server` and `port` those of a NAS (smb); `uids`
    says for both whom a uid of this machine stands for.
    """

    source: Literal["nss", "smb", "ldap", "file"] = "nss"
    file: kind.OptionalPath = None
    token_ttl: kind.Duration = kind.parse_duration("60s")
    url: str = ""
    base: str = ""
    ca_file: kind.OptionalPath = None
    server: str = ""
    port: Annotated[int, Field(ge=1, le=65535)] = 445
    username: str = ""
    password_file: kind.OptionalPath = None
    uids: dict[str, kind.Name] = {}

    @model_validator(mode="after")
    def _file_if_needed(self) -> DirectorySettings:
        if (self.source == "file") != (self.file is not None):
            raise ValueError('file must be set with source = "file", and only then')
        return self

    @model_validator(mode="after")
    def _server_if_needed(self) -> DirectorySettings:
        login = ("username", "password_file")
        needed = {"ldap": ("url", "base", *login), "smb": ("server", *login)}
        for key in needed.get(self.source, ()):
            if not getattr(self, key):
                raise ValueError(f'{key} must be set with source = "{self.source}"')
        for uid in self.uids:
            if not uid.isascii() or not uid.isdigit() or str(int(uid)) != uid:
                raise ValueError(f'uids: "{uid}" is no uid; write such as {{ "1000" = "alice" }}')
        return self


class DeletesSettings(Section):
    """`[deletes]`: when missing notes are taken out of the index, and when they are held."""

    confirm_polls: Annotated[int, Field(ge=1, le=100)] = 2
    hold_share: Annotated[float, Field(ge=0, le=1)] = 0.3
    hold_count: Annotated[int, Field(ge=0)] = 20


class ChunkingSettings(Section):
    """`[chunking]`: the budget of a chunk, counted with the shipped vocabulary, prefix included."""

    max_tokens: Annotated[int, Field(ge=128, le=8_000)] = 240


class EmbeddingSettings(Section):
    """`[embedding]`: which model turns text into vectors. `model` and `dimension` default by provider."""

    provider: Literal["local", "voyage", "hash"] = "local"
    model: kind.Name
    query_model: str = ""
    dimension: Annotated[int, Field(ge=8, le=4_000)]
    model_path: kind.OptionalPath = None
    model_sha256: kind.Sha256 = None
    api_key_file: kind.OptionalPath = None
    base_url: kind.Address = None
    price: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _fill_by_provider(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        provider = data.get("provider", "local")
        model, dimension = _DEFAULT_MODEL.get(str(provider), ("unknown", 384))
        return {"model": model, "dimension": dimension, **data}

    @model_validator(mode="after")
    def _file_with_its_hash(self) -> EmbeddingSettings:
        if (self.model_path is None) != (self.model_sha256 is None):
            raise ValueError("model_path and model_sha256 must be set together")
        if self.query_model and not (_in_series_4(self.model) and _in_series_4(self.query_model)):
            raise ValueError("query_model needs two models of the series voyage-4, which share one space")
        if self.model_path and self.provider != "local":
            raise ValueError('model_path counts only with provider = "local"')
        return self


def _in_series_4(model: str) -> bool:
    return model == "voyage-4" or model.startswith("voyage-4-")


class SearchSettings(Section):
    """`[search]`: up to `exact_limit` readable chunks vectors are compared one by one."""

    exact_limit: Annotated[int, Field(ge=0)] = 30_000
    exact_only: StrictBool = False
    per_note: Annotated[int, Field(ge=1)] = 3
    vector_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    keyword_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    prefer_current: StrictBool = True

    @model_validator(mode="after")
    def _one_leg_counts(self) -> SearchSettings:
        if not self.vector_weight and not self.keyword_weight:
            raise ValueError("vector_weight and keyword_weight cannot both be 0")
        return self


class RerankSettings(Section):
    """`[rerank]`: who puts the best candidates in order. `model` "" is the provider's usual one."""

    provider: Literal["none", "local", "voyage", "claude"] = "none"
    model: str = ""
    base_url: kind.Address = None
    api_key_file: kind.OptionalPath = None
    timeout: kind.Duration = kind.parse_duration("8s")


class PriceSettings(Section):
    """`[answer.prices]`: US dollars per million tokens of one model."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class AnswerSettings(Section):
    """`[answer]`: who writes the answer. The budgets are US dollars a day (UTC), 0 for no limit."""

    provider: Literal["extracts", "anthropic"] = "extracts"
    mode: Literal["search", "auto"] = "search"
    model: kind.Name = "claude-sonnet-5-5"
    small_model: str = ""
    fallback_model: str = ""
    fallback: Literal["extracts", "none"] = "extracts"
    base_url: kind.Address = None
    api_key_file: kind.OptionalPath = None
    citations: Literal["auto", "native", "marks"] = "auto"
    max_passages: Annotated[int, Field(ge=1, le=100)] = 8
    max_tokens: Annotated[int, Field(ge=64, le=64_000)] = 2_000
    whole_limit: Annotated[int, Field(ge=1_000, le=1_000_000)] = 200_000
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""
    timeout: kind.Duration = kind.parse_duration("120s")
    history: kind.DurationOrOff = kind.parse_duration("7d")
    prices: dict[str, PriceSettings] = {}
    budget: Annotated[float, Field(ge=0)] = 0.0
    budget_per_person: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _priced(self) -> AnswerSettings:
        """A budget that counts nothing limits nothing."""
        if self.provider == "anthropic" and (self.budget or self.budget_per_person):
            for name in filter(None, (self.model, self.small_model, self.fallback_model)):
                if name not in self.prices:
                    raise ValueError(
                        f'budget needs prices of the model "{name}"; set [answer.prices."{name}"]'
                    )
        return self


class AnswererSettings(Section):
    """`[answerer]`: the team's service. Without `socket` there is none.

    `user` is the account it runs as, the only one that may use `late_check_socket`; "": the indexer's own.
    """

    socket: kind.OptionalPath = None
    late_check: Literal["prefer", "require", "off"] = "prefer"
    late_check_socket: kind.OptionalPath = None
    user: str = ""
    admins: list[kind.Name] = []


class PrivacySettings(Section):
    """`[privacy]`: what the audit log keeps of a question's text."""

    questions: Literal["keep", "hash", "drop"] = "keep"


class MetricsSettings(Section):
    """`[metrics]`: where the numbers of the daemon can be read; "" is nowhere."""

    listen: kind.MetricsDoor = None
