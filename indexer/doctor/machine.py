"""What doctor looks at on this machine: configuration, secrets, disk, model, clock."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
from pathlib import Path
from urllib.parse import urlsplit

from indexer.doctor.report import Check
from indexer.output import counted
from notewarden.embedding.factory import make_embedder
from notewarden.embedding.voyage import VoyageEmbedder
from notewarden.errors import ConfigError
from notewarden.secret_files import placed
from notewarden.settings import Settings

_LEAST_FREE = 1_000_000_000
_TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised
_TIMEX_BYTES = 256  # more than struct timex has anywhere


def configuration(settings: Settings) -> Check:
    """The file was read and is trusted: that was part of loading it."""
    count = counted(len(settings.shares), "share")
    detail = f"{settings.file} is valid and can be changed by its owner and root alone; {count}."
    if not settings.shares:
        return Check("configuration", False, f"{settings.file} names no share.", "Add a [[share]].")
    password = any(
        urlsplit(url).password for url in (settings.database.url, settings.database.reader_url or "")
    )
    if password and settings.file.stat().st_mode & 0o077:
        raise ConfigError(
            f"{settings.file} holds the database's password and others may read it; run `chmod 600` on it, "
            "or let PostgreSQL know us by our account (peer)."
        )
    return Check("configuration", True, detail)


def secrets(settings: Settings) -> Check:
    """Every secret file is there, holds something, and is its owner's alone."""
    files = settings.secret_files
    if not files:
        return Check("secrets", True, "The configuration names no secret file.")
    closed = [file for file in files if is_closed(file)]
    for file in files:
        if file not in closed:
            _require_secret(placed(file))
    detail = f"{counted(len(files) - len(closed), 'secret file')}, readable by the owner alone."
    if closed:
        detail += f" Not this account's to look at: {', '.join(map(str, closed))}."
    return Check("secrets", True, detail)


def is_closed(file: Path) -> bool:
    """Whether the secret `file` is another account's, and so none to complain of."""
    try:
        placed(file).stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _require_secret(file: Path) -> None:
    try:
        info = file.stat()
    except OSError as error:
        raise ConfigError(
            f"The secret file {file} cannot be read ({error.strerror}); put it there."
        ) from error
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise ConfigError(f"Others may read the secret file {file}; run `chmod 600 {file}`.")
    if not info.st_size:
        raise ConfigError(f"The secret file {file} is empty; write the secret into it.")


def disk(settings: Settings) -> Check:
    """There is room where the index lives, as far as it lives on this machine."""
    folder = settings.state_dir
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    detail = f"{usage.free / 1e9:.1f} GB free for {settings.state_dir}."
    if usage.free < _LEAST_FREE:
        return Check("disk", False, detail, "Make room there, or set another state_dir.")
    return Check("disk", True, detail)


def model(settings: Settings) -> Check:
    """The embedding model works: a local one is loaded and its hash checked, a provider's key is tried."""
    section = settings.embedding
    embedder = make_embedder(section)
    names = dict.fromkeys((section.provider, section.model))
    name = f"{' '.join(names)}, {section.dimension} dimensions"
    if section.provider == "hash":
        return Check(
            "embedding model", True, f"{name}: search by meaning finds nothing useful with it.",
            'Set [embedding] provider = "local"; "hash" is for tests.',
        )  # fmt: skip
    if isinstance(embedder, VoyageEmbedder):
        embedder.try_key()
        return Check("embedding model", True, f"{name}: the provider takes the key; nothing was spent.")
    embedder.embed_query("ready")
    return Check("embedding model", True, f"{name}: its bytes are the right ones, and it runs.")


def clock() -> Check:
    """The kernel says that something keeps its clock right."""
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    if state == _TIME_ERROR:
        return Check(
            "clock", True, "Nothing keeps this machine's clock right, as far as the kernel knows.",
            "Run a time service such as systemd-timesyncd or chrony: the age of permissions goes by it.",
        )  # fmt: skip
    if state < 0:
        return Check("clock", True, f"The kernel does not tell ({os.strerror(ctypes.get_errno())}).")
    return Check("clock", True, "Kept right by a time service.")
