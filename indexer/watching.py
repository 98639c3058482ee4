"""`[[share]] watch = true`: a change that the server tells of starts a poll early; polls stay the truth."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from indexer.daemon import Daemon
from notewarden.errors import ConfigError
from notewarden.log import get_logger
from notewarden.settings_sections import ShareSettings

_log = get_logger(__name__)

_END_PATIENCE_S = 1.0


@contextmanager
def watchers(daemon: Daemon) -> Iterator[None]:
    """Watch every share that asks for it while the block runs; a reload counts for it after a restart."""
    ended = threading.Event()
    threads = []
    for share in daemon.settings.shares:
        if share.watch:
            threads.append(_started(share, daemon.change_told, ended))
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(_END_PATIENCE_S)


def _started(share: ShareSettings, ring: Callable[[], None], ended: threading.Event) -> threading.Thread:
    """Raises ConfigError where this share's source tells of no changes."""
    if share.acl.source != "smb":
        raise ConfigError(
            f'Share {share.name!r}: watch = true works with [share.acl] source = "smb" only; set it to '
            "false, polls find every change all the same."
        )
    from acl.sources.smb.watch import Watch

    def told(words: str) -> None:
        _log.info(words, share=share.name)

    watch = Watch(share, ring, told)
    thread = threading.Thread(target=watch.run, args=(ended,), name=f"watch {share.name}", daemon=True)
    thread.start()
    return thread
