"""In which order things are looked at, and that none of them can end the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from db.pool import Database
from indexer.doctor import machine, provider, shares, stores
from indexer.doctor.report import Check
from notewarden.errors import ConfigError, NotewardenError
from notewarden.settings import Settings, find_config, load_settings

Look = Callable[[], Check]

_NO_REMEDY = "Look at the log; set NOTEWARDEN_DEBUG=1 to see more."
_CORRECT = "Correct it in the configuration; config.example.toml lists every key."
_NOTHING_DELETED = " Nothing was deleted."


def examine(config: Path | None) -> list[Check]:
    """Look at everything and return what was found, in order; never raises for what is wrong.

    Nothing is changed and nothing is spent. Where the configuration cannot be read, only what needs none is
    looked at.
    """
    settings: list[Settings] = []

    def configuration() -> Check:
        settings.append(load_settings(find_config(config)))
        return machine.configuration(settings[0])

    checks = [_looked("configuration", configuration)]
    if settings:
        checks += [_looked(name, look) for name, look in _without_database(settings[0])]
        checks += _all_looked("answer model", lambda: provider.models(settings[0]))
        for share in settings[0].shares:
            checks += _all_looked(f"server {share.name}", partial(shares.diagnosed, share))
        checks += _with_database(settings[0])
    else:
        checks.append(_looked("embedded database's programs", stores.programs))
    checks.append(_looked("clock", machine.clock))
    return checks


def _without_database(settings: Settings) -> Iterator[tuple[str, Look]]:
    yield "secrets", lambda: machine.secrets(settings)
    yield "disk", lambda: machine.disk(settings)
    yield "embedding model", lambda: machine.model(settings)
    yield "directory", lambda: shares.people(settings)
    for share in settings.shares:
        yield f"mount {share.name}", partial(shares.mounted, share)
        yield f"permissions {share.name}", partial(shares.permissions, settings, share)


def _with_database(settings: Settings) -> list[Check]:
    opened: list[Database] = []

    def reached() -> Check:
        opened.append(stores.opened(settings))
        return Check("database", True, opened[0].describe(), stores.embedded_hint(settings))

    checks = [_looked("database", reached)]
    if not opened:
        return checks
    with opened[0] as database:
        looks: list[tuple[str, Look]] = [
            ("database server", lambda: stores.server(database)),
            ("database schema", lambda: stores.schema(database)),
            ("reader role", lambda: stores.reader(database)),
            ("database clock", lambda: stores.clock(database)),
            ("daemon", lambda: stores.daemon(database, settings)),
        ]
        for share in settings.shares:
            looks.append((f"identity {share.name}", partial(shares.identity, database, share)))
        return checks + [_looked(name, look) for name, look in looks]


def _looked(name: str, look: Look) -> Check:
    try:
        return look()
    except NotewardenError as error:
        detail, remedy = split(str(error), _CORRECT if isinstance(error, ConfigError) else _NO_REMEDY)
        return Check(name, False, detail, remedy)
    except Exception as error:  # the next check still counts
        return Check(name, False, f"Unexpected fault ({type(error).__name__}).", _NO_REMEDY)


def _all_looked(name: str, look: Callable[[], list[Check]]) -> list[Check]:
    found: list[Check] = []

    def one() -> Check:
        found.extend(look())
        return Check(name, True, "")

    failed = _looked(name, one)
    return found if failed.ok else [failed]


def split(sentence: str, otherwise: str = _NO_REMEDY) -> tuple[str, str]:
    """Part one of our sentences into what happened and what to do, which stands behind its last semicolon.

    `otherwise` is what to do where a sentence does not say.
    """
    what, semicolon, remedy = sentence.removesuffix(_NOTHING_DELETED).rpartition("; ")
    if not semicolon:
        return sentence, otherwise
    return what.rstrip(".") + ".", remedy[:1].upper() + remedy[1:]
