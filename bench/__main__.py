"""`python -m bench NAME …` runs one measurement, `python -m bench` all of them."""

from __future__ import annotations

import importlib
import sys

NAMES = ("answer", "first", "large", "permissions", "poll", "quality", "search", "smb", "start")


def main() -> None:
    """Run the measurement named first with its options, or each in turn."""
    names, rest = sys.argv[1:2], sys.argv[2:]
    if names and names[0] not in NAMES:
        raise SystemExit(f"usage: python -m bench [{{{','.join(NAMES)}}} [options]]")
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        importlib.import_module(f"bench.{name}").main(rest)


if __name__ == "__main__":
    main()
