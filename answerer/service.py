"""`notewarden-answerer`: the team's answerer behind a Unix socket."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from acl.directory import make_directory
from answerer.api import make_app
from answerer.engine import Engine
from answerer.identity import Doorkeeper, require_all_ids
from answerer.sockets import PeerProtocol, listen
from db.pool import Database
from notewarden import systemd
from notewarden.display import printable
from notewarden.embedding.factory import make_embedder
from notewarden.errors import ConfigError, NotewardenError
from notewarden.log import configure_logging, get_logger
from notewarden.settings import Settings, find_config, load_settings

_STOP_PATIENCE = 10  # seconds that open questions have once a stop is asked for


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the service until SIGTERM or SIGINT; returns its exit code. Errors are one sentence on stderr."""
    parser = argparse.ArgumentParser("notewarden-answerer", description=__doc__)
    parser.add_argument("--config", type=Path, help="the configuration file")
    options = parser.parse_args(arguments)
    try:
        settings = load_settings(find_config(options.config))
        configure_logging(settings.log)
        serve(settings)
    except NotewardenError as error:
        print(f"notewarden-answerer: {printable(str(error))}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def serve(settings: Settings) -> None:
    """Open everything, answer until told to stop, close everything.

    Raises ConfigError where askers cannot be told apart or no socket is configured, and what the database,
    the directory and the embedding model raise: better no start than a half one.
    """
    require_all_ids()
    path = settings.answerer.socket
    if path is None:
        raise ConfigError(f'{settings.file} sets no [answerer] socket = "/path"; the service needs one.')
    directory, embedder = make_directory(settings), make_embedder(settings.embedding)
    with Database.open_reader(settings) as database:
        engine = Engine(settings, database, directory, embedder)
        app = make_app(engine, Doorkeeper(directory, settings, service=True))
        with listen(path) as door, _ended_by_sigterm():
            get_logger(__name__).info("answering", socket=str(path))
            systemd.notify("READY=1", "STATUS=Answering")
            uvicorn.Server(_config(app)).run(sockets=[door])


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """End cleanly and with exit code 0 on SIGTERM: uvicorn raises it again after its own shutdown."""

    def stop(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _config(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=_STOP_PATIENCE,
    )


if __name__ == "__main__":
    sys.exit(main())
