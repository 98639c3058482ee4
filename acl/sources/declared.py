"""The source of a share whose readers are declared in the configuration, folder by folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acl import share_layer
from acl.declared import Rule, Rules, parent_folder
from acl.directory import Directory
from acl.model import AccessList
from acl.mounts import mount_of
from acl.names import DeclaredNames

if TYPE_CHECKING:
    from notewarden.settings import ShareSettings


class DeclaredSource:
    """Implements Source. Names are looked up at each check, so that a lost one counts at the next sync."""

    def __init__(self, share: ShareSettings, directory: Directory) -> None:
        """Raises ConfigError for rules that contradict each other, ShareUnavailable without its root."""
        acl = share.acl
        self._acl = acl
        rules = (Rule(rule.folder, tuple(rule.readers), tuple(rule.denied)) for rule in acl.rules)
        self._rules = Rules(rules, ignore_case=mount_of(share.path).ignores_case)
        used = (*self._rules.names, *(acl.share_readers or ()), *(acl.share_denied or ()))
        self._names = DeclaredNames(share.name, used, directory)
        self._compiled: dict[share_layer.DeclaredAccess, AccessList] = {}

    @property
    def ctime_tells(self) -> bool:
        """False: what changes here is the configuration and the directory, which touch no file."""
        return False

    @property
    def by_folder(self) -> bool:
        """True: a rule speaks of folders."""
        return True

    def check(self) -> None:
        """Look the names up again; raises ConfigError for one that is unknown at load (the first check)."""
        self._names.refresh()
        self._compiled = {}

    def recheck(self) -> None:
        """Look the names up again, none of which need be known: the share was loaded before."""
        self._names.refresh(loaded=True)
        self._compiled = {}

    def share_lists(self) -> tuple[AccessList, ...]:
        """Everyone, unless ``share_readers`` or ``share_denied`` are declared."""
        return share_layer.share_lists(self._acl.share_readers, self._acl.share_denied, self._names.sid)

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        """None: a rule holds for a folder and all below it, so the note's own list says everything."""
        return ()

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        """The list of the rule that is nearest to the note's folder; without a rule: nobody."""
        access = self._rules.access(parent_folder(path))
        if access not in self._compiled:
            self._compiled[access] = share_layer.compile_declared(access, "note", self._names.sid)
        return (self._compiled[access],)
