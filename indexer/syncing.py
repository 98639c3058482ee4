"""The commands that run the indexer or need its rules: what they print, and their exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acl.directory import make_directory
from db.pool import Database
from indexer.actor import actor_of
from indexer.asking import argument_paths, ask_daemon
from indexer.confirm import AllConfirmed, Confirmation, confirm_shares, wanted_shares
from indexer.output import counted, out, out_json, say
from indexer.progress import ProgressLine
from indexer.rehearsal import Rehearsal
from indexer.reindex import outdate
from indexer.report import ShareReport, SyncReport
from indexer.setup import Equipment, equip, patiently
from indexer.sync import Indexer, Options
from notewarden.display import printable
from notewarden.errors import ShareUnavailable, SyncIncomplete
from notewarden.settings import Settings

_COUNTS = ("seen", "hashed", "added", "changed", "moved", "deleted", "acl_changed")
_STANDING = ("held", "unreadable", "parked", "pending", "skipped")


@dataclass(frozen=True)
class Wish:
    """What `sync` was asked for."""

    full: bool = False
    dry_run: bool = False
    as_json: bool = False


def run_sync(settings: Settings, wish: Wish) -> int:
    """Poll every share once, print the report and return the exit code; raises as Indexer.sync does."""
    equipment = equip(settings)
    with Database.open(settings) as database:
        if wish.dry_run:
            return _rehearse(Rehearsal(settings, database, equipment), wish)
        told = ask_daemon(database, "sync", {"full": wish.full}, quiet=wish.as_json)
        if told is not None:
            report = _report_of(told[0])
        else:
            indexer = _indexer(settings, database, equipment)
            report = _polled(indexer.sync, full=wish.full, quiet=wish.as_json)
    if wish.as_json:
        out_json(report.as_json())
    else:
        out(as_text(report))
    return _told(report)


def run_reindex(settings: Settings, paths: Sequence[str] | None, share: str | None) -> int:
    """Mark what `paths` name (None: all) and poll; return the sync's exit code."""
    equipment = equip(settings)
    with Database.open(settings) as database:
        arguments = {"paths": argument_paths(paths), "share": share}
        told = ask_daemon(database, "reindex", arguments)
        count = outdate(database, settings, paths, share) if told is None else told[0]["outdated"]
        out(f"{'Indexing' if told is None else 'Indexed'} {counted(count, 'note')} again.")
        if told is None:
            report = _polled(_indexer(settings, database, equipment).sync, full=False, quiet=False)
        else:
            report = _report_of(told[0])
    out(as_text(report))
    return _told(report)


def run_confirm(settings: Settings, share: str | None, *, emptied: bool) -> int:
    """Delete what is held of `share`, or of all, and print the number."""
    wanted = wanted_shares(settings, share)
    directory = make_directory(settings)
    arguments = {"share": share, "emptied": emptied, "actor": str(actor_of(directory))}
    with Database.open(settings) as database:
        told = ask_daemon(database, "confirm-deletes", arguments)
        if told is None:
            confirmation = Confirmation(database, directory)
            confirmed = patiently(lambda: confirm_shares(confirmation, wanted, emptied=emptied))
        else:
            confirmed = AllConfirmed.from_json(told[0])
    out(f"{counted(sum(one.deleted for one in confirmed.done), 'note')} deleted from the index.")
    for one in confirmed.done:
        if one.returned:
            say(
                f"{one.share}: {counted(one.returned, 'held note', 'is')} there again; the next sync takes it"
            )
    for sentence in confirmed.trouble:
        say(sentence)
    return ShareUnavailable.exit_code if confirmed.trouble else 0


def as_text(report: SyncReport) -> str:
    """Return one line a share, then the run's totals."""
    lines = [_line(share) for share in report.shares]
    chunks = f"{counted(report.chunks_embedded, 'chunk')} embedded, {report.chunks_reused} reused"
    lines.append(f"{counted(len(report.shares), 'share')}, {chunks}, {report.seconds:.1f} s")
    return "\n".join(lines)


def _line(share: ShareReport) -> str:
    name = printable(share.share)
    if share.status != "ok":
        return f"{name}: unavailable"
    counts = [f"{getattr(share, field)} {field.replace('_', ' ')}" for field in _COUNTS]
    standing = [f"{getattr(share, field)} {field}" for field in _STANDING if getattr(share, field)]
    return f"{name}: {', '.join(counts)}" + (f"; standing: {', '.join(standing)}" if standing else "")


def _indexer(settings: Settings, database: Database, equipment: Equipment) -> Indexer:
    return Indexer(settings, database, directory=equipment.directory, embedder=equipment.embedder)


def _report_of(result: Mapping[str, Any]) -> SyncReport:
    """Return the report that a daemon's result carries."""
    report = SyncReport.from_json(result["report"])
    for one in report.shares:
        one.reason = str(result.get("reasons", {}).get(one.share, ""))
    return report


def _polled(sync: Callable[[Options], SyncReport], *, full: bool, quiet: bool) -> SyncReport:
    progress = ProgressLine(terminal_only=quiet)
    try:
        return patiently(lambda: sync(Options(full=full, progress=progress)))
    finally:
        progress.close()


def _rehearse(rehearsal: Rehearsal, wish: Wish) -> int:
    report = _polled(rehearsal.sync, full=wish.full, quiet=wish.as_json)
    cost = rehearsal.counted
    if wish.as_json:
        out_json(rehearsal.as_json(report))
    else:
        out("Nothing was written; a sync now would do this:")
        out(as_text(report))
        out(f"Cost: {counted(cost.texts, 'text')} to embed, {counted(cost.tokens, 'token')}.")
    _tell_unavailable(report)
    return ShareUnavailable.exit_code if any(share.status != "ok" for share in report.shares) else 0


def _told(report: SyncReport) -> int:
    _tell_unavailable(report)
    if report.exit_code == SyncIncomplete.exit_code:
        say(str(SyncIncomplete()))
    return report.exit_code


def _tell_unavailable(report: SyncReport) -> None:
    for share in report.shares:
        if share.status != "ok":
            say(f"{share.share}: {share.reason}")
