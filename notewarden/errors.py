"""The one tree of errors: each class has a stable exit code, its docstring is its default sentence."""

from __future__ import annotations

from typing import ClassVar


class NotewardenError(Exception):
    """Something went wrong that notewarden did not expect."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or _first_line(type(self)))


class UsageError(NotewardenError):
    """The command was called in a way it does not understand."""

    exit_code = 2


class ConfigError(NotewardenError):
    """The configuration cannot be used as it stands."""

    exit_code = 2


class NotInNotes(NotewardenError):
    """There is nothing about this in the notes you may read."""

    exit_code = 3


class ShareUnavailable(NotewardenError):
    """The share cannot be reached, or is not the share it was; nothing was deleted."""

    exit_code = 4


class ShareRefused(ShareUnavailable):
    """The file server answers, but does not let this service in; nothing was deleted."""


class IndexTooOld(NotewardenError):
    """The permissions in the index are too old to be trusted; run a sync."""

    exit_code = 4


class AskerUnknown(NotewardenError):
    """Your account is not known to the directory."""

    exit_code = 5


class AskerNotAllowed(NotewardenError):
    """Your account may not do this."""

    exit_code = 5


class DirectoryUnreachable(NotewardenError):
    """The directory of users and groups cannot be reached, so nobody can be answered now."""

    exit_code = 5


class SyncIncomplete(NotewardenError):
    """Some notes stand pending, parked, unreadable or held after the sync; see `notewarden status`."""

    exit_code = 6


class DatabaseUnavailable(NotewardenError):
    """The database cannot be reached."""

    exit_code = 7


class SchemaTooNew(NotewardenError):
    """The database was written by a newer notewarden; upgrade this one."""

    exit_code = 7


class AnswererFailed(NotewardenError):
    """The answerer cannot be reached or broke off."""

    exit_code = 8


class ProviderFailed(NotewardenError):
    """The model provider failed."""

    exit_code = 8


class EmbeddingFailed(ProviderFailed):
    """The embedding model failed."""

    def __init__(self, message: str | None = None, *, permanent: bool = False) -> None:
        """`permanent`: the same texts will fail again, so trying later does not help."""
        super().__init__(message)
        self.permanent = permanent


class QuotaReached(EmbeddingFailed):
    """The embedding provider takes no more texts for now: its quota is used up."""

    def __init__(self, message: str | None = None, *, after_s: float = 60.0) -> None:
        """`after_s`: how long to wait before the next try, in seconds."""
        super().__init__(message)
        self.after_s = after_s


class LimitReached(NotewardenError):
    """A limit on spending or rate is reached; try again later."""

    exit_code = 9


class Interrupted(NotewardenError):
    """Interrupted."""

    exit_code = 130


class NoteError(NotewardenError):
    """Trouble of one note only: it is recorded for that note and the run goes on."""

    permanent_by_default: ClassVar[bool] = False

    def __init__(self, reason: str | None = None, *, permanent: bool | None = None) -> None:
        """`reason` is what the ledger shows; `permanent`: only a change of the note can help."""
        super().__init__(reason)
        self.reason = str(self)
        self.permanent = self.permanent_by_default if permanent is None else permanent


class NoteUnreadable(NoteError):
    """The note or its permissions cannot be read."""


class NoteSkipped(NoteError):
    """The note is left out on purpose, such as a binary or an over-long file."""

    permanent_by_default = True


class NoteChanged(NoteError):
    """The note changed while it was read; the next poll reads it again."""


class NoteParked(NoteError):
    """The note failed too often and waits for a change or for `notewarden reindex`."""

    permanent_by_default = True


def _first_line(cls: type[NotewardenError]) -> str:
    for base in cls.__mro__:
        if base.__doc__ and issubclass(base, NotewardenError):
            return base.__doc__.strip().splitlines()[0]
    return cls.__name__  # under `python -OO` docstrings are gone
