"""Sources: where the access lists of a share come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from acl.model import AccessList

if TYPE_CHECKING:
    from acl.directory import Directory
    from notewarden.settings import ShareSettings


class Source(Protocol):
    """Reads and compiles the layers of a share. What cannot be read comes back quarantined, never as open."""

    @property
    def ctime_tells(self) -> bool:
        """Whether every change of an ACL moves the file's ctime, as seen from here."""
        ...

    @property
    def by_folder(self) -> bool:
        """Whether a note's lists follow from its folder alone: `note_lists` then needs no descriptor (-1)."""
        ...

    def check(self) -> None:
        """Called at the start of every sync, before anything is touched.

        Raises ConfigError if rights cannot be had this way for this share; the sentence says what to do. The
        first call is the load, where an unknown name is an error too; later ones look them up anew.
        """
        ...

    def recheck(self) -> None:
        """As check, for a share that was loaded before, if by another process: a lost name is no error.

        Called before each late check.
        """
        ...

    def share_lists(self) -> tuple[AccessList, ...]:
        """The lists of the share itself; all must pass. Never empty."""
        ...

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        """The guards of one folder (b"": the share's root), read from its open descriptor; all must pass."""
        ...

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        """The lists of one note, read from its open descriptor; all must pass. Never empty."""
        ...


@runtime_checkable
class Prefetching(Protocol):
    """A source that is asked over a network, and answers many questions in little more time than one."""

    def prefetch(self, folder: bytes, names: Sequence[bytes]) -> None:
        """Ask for notes of one folder at once; each answer then serves one `note_lists`, read soon after.

        Raises ShareUnavailable.
        """
        ...


@runtime_checkable
class TextGiving(Protocol):
    """A source that may have to give the text too, where what is mounted cannot be paired with its lists."""

    @property
    def gives_text(self) -> bool:
        """Whether the text must be read by `text`."""
        ...

    def text(self, path: bytes, most: int) -> bytes:
        """A note's text, at most `most` bytes. Raises NoteUnreadable, OSError, ShareUnavailable."""
        ...


def make_source(share: ShareSettings, directory: Directory) -> Source:
    """The source a share is configured with. Raises ConfigError for one that is not available."""
    if share.acl.source == "posix":
        from acl.sources.posix import PosixSource

        return PosixSource(share, directory)
    if share.acl.source == "declared":
        from acl.sources.declared import DeclaredSource

        return DeclaredSource(share, directory)
    if share.acl.source == "smb":
        from acl.sources.smb.source import SmbSource

        return SmbSource(share, directory)
    if share.acl.source == "nfs4":
        from acl.sources.nfs4 import Nfs4Source

        return Nfs4Source(share, directory)
    from acl.sources.cifs import CifsSource

    return CifsSource(share, directory)
