"""`notewarden status` for people: tables of shares and of notes in trouble, then what needs a look."""

from __future__ import annotations

import io
import shutil
import sys
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from indexer.output import moment, shown
from indexer.searchstate import as_line
from indexer.status import Status
from notewarden.display import printable

_NARROW = 100


def as_text(status: Status) -> str:
    """Return the status as tables and sentences."""
    written = io.StringIO()
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((_NARROW, 24)).columns if terminal else 160
    console = Console(file=written, width=max(width, _NARROW), color_system=None, highlight=False)
    console.print(_shares(status))
    if status.notes:
        console.print(_notes(status))
    lines = [written.getvalue().rstrip(), ""]
    told = status.daemon.splitlines() if status.daemon else ["none runs; `notewarden sync` polls once"]
    lines += [f"Daemon: {printable(told[0])}"] + [f"- {printable(line)}" for line in told[1:]]
    lines += [f"Coverage: {printable(one.share)}: {one.under_way}" for one in status.shares if one.under_way]
    if status.search:
        lines.append(f"Search: {as_line(status.search)}")
    lines += ["", "Healthy."] if status.healthy else ["", "Needs a look:"]
    lines += [f"- {printable(reason)}" for reason in status.reasons]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())


def _shares(status: Status) -> Table:
    heads = ("share", "notes", "chunks", "coverage", "last poll", "last ACL sweep", "last embedded", "held")
    table = _table(heads)
    for one in status.shares:
        times = (_time(one.last_poll), _time(one.last_acl_sweep), _time(one.last_embedded))
        counts = (str(one.notes), str(one.chunks), f"{one.coverage:.1%}")
        table.add_row(*map(_cell, (one.share, *counts, *times, str(one.held))))
    return table


def _notes(status: Status) -> Table:
    table = _table(("note", "state", "reason", "attempts", "since"))
    for one in status.notes:
        name = f"{one.share}:{shown(one.path)}"
        table.add_row(*map(_cell, (name, one.state, one.reason, str(one.attempts), _time(one.since))))
    return table


def _table(heads: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _cell(text: str) -> Text:
    return Text(printable(text))


def _time(at: datetime | None) -> str:
    return moment(at) or "never"
