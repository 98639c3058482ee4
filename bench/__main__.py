"""`python -m bench NAME …` runs one measurement, `python -m bench` names them."""

from __future__ import annotations

import importlib
import sys

NAMES = ("poll", "quality", "start")


def main() -> None:
    """Run the measurement named first."""
    name, rest = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if name not in NAMES:
        raise SystemExit(f"usage: python -m bench {{{','.join(NAMES)}}} [options]")
    importlib.import_module(f"bench.{name}").main(rest)


if __name__ == "__main__":
    main()
