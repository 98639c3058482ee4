"""An early bell: the server tells that something below a folder changed (CHANGE_NOTIFY, MS-SMB2 2.2.35).

It starts a poll sooner and decides nothing: a server may tell late, twice or never.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from smbprotocol.change_notify import ChangeNotifyFlags, CompletionFilter, FileSystemWatcher
from smbprotocol.connection import Connection
from smbprotocol.exceptions import SMBException
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    DirectoryAccessMask,
    FileAttributes,
    ImpersonationLevel,
    Open,
    ShareAccess,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from acl.sources.smb.session import login_of

if TYPE_CHECKING:
    from notewarden.settings_sections import ShareSettings

_LOOK_S = 0.5
_ALIVE_S = 30.0  # a silent server is asked now and then whether it is there
_FIRST_S, _LONGEST_S = 5.0, 300.0

# Names, sizes, times and permissions.
_CHANGES = (
    CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME
    | CompletionFilter.FILE_NOTIFY_CHANGE_DIR_NAME
    | CompletionFilter.FILE_NOTIFY_CHANGE_SIZE
    | CompletionFilter.FILE_NOTIFY_CHANGE_LAST_WRITE
    | CompletionFilter.FILE_NOTIFY_CHANGE_SECURITY
)
_BROKEN = (SMBException, OSError, ValueError, LookupError, TypeError, AttributeError)


class Watch:
    """One share's bell, on a connection of its own."""

    def __init__(self, share: ShareSettings, ring: Callable[[], None], told: Callable[[str], None]) -> None:
        """`ring` is called after a change, `told` with a sentence when watching began or broke.

        Raises ConfigError where the log-in is not fully configured.
        """
        self._login = login_of(share.name, share.acl)
        self._folder = "\\".join(share.acl.share.strip("/").split("/")[1:])
        self._ring = ring
        self._told = told

    def run(self, ended: Event) -> None:
        """Watch until `ended` is set; a connection that breaks is made again after growing waits."""
        wait = _FIRST_S
        while not ended.is_set():
            try:
                with contextlib.ExitStack() as stack:
                    folder = self._opened(stack)
                    self._told("watching for changes")
                    self._ring()  # something may have changed while nobody watched
                    wait = _FIRST_S
                    self._watch(folder, ended)
            except _BROKEN as error:
                self._told(f"watching broke ({type(error).__name__}); polls go on by the schedule")
            ended.wait(wait)
            wait = min(wait * 2, _LONGEST_S)

    def _watch(self, folder: Open, ended: Event) -> None:
        while not ended.is_set():
            watcher = FileSystemWatcher(folder)
            # With no room for details the server tells only that something changed: names stay with it.
            watcher.start(_CHANGES, ChangeNotifyFlags.SMB2_WATCH_TREE, output_buffer_length=0)
            if not self._changed(watcher, folder, ended):
                watcher.cancel()
                return
            self._ring()

    def _changed(self, watcher: FileSystemWatcher, folder: Open, ended: Event) -> bool:
        silent = 0.0
        while not watcher.response_event.wait(_LOOK_S):
            if ended.is_set():
                return False
            silent += _LOOK_S
            if silent >= _ALIVE_S:
                folder.connection.echo(sid=folder.tree_connect.session.session_id)
                silent = 0.0
        return watcher.result is not None  # raises what the server answered instead

    def _opened(self, stack: contextlib.ExitStack) -> Open:
        login = self._login
        connection = Connection(uuid.uuid4(), login.host, login.port, require_signing=True)
        connection.connect(timeout=30)
        stack.callback(_quietly, partial(connection.disconnect, close=False))  # a dead server answers nothing
        session = Session(
            connection, login.username, login.password, require_encryption=False, auth_protocol="ntlm"
        )
        session.connect()
        tree = TreeConnect(session, rf"\\{login.host}\{login.tree}")
        tree.connect()
        folder = Open(tree, self._folder)
        folder.create(
            ImpersonationLevel.Impersonation,
            DirectoryAccessMask.FILE_LIST_DIRECTORY | DirectoryAccessMask.FILE_READ_ATTRIBUTES,
            FileAttributes.FILE_ATTRIBUTE_DIRECTORY,
            ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE,
            CreateDisposition.FILE_OPEN,
            CreateOptions.FILE_DIRECTORY_FILE,
        )
        return folder


def _quietly(close: Callable[[], None]) -> None:
    with contextlib.suppress(*_BROKEN):
        close()
