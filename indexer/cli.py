"""`notewarden`: the admin's command. Each command is thin; what it does stands in a module of its own."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from indexer.output import close_quietly, out, out_json, say, shown

_INTERRUPTED = 130

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    suggest_commands=False,
    no_args_is_help=True,
)

# With `parser` typer does not look at the path itself, which on a dead mount would never end.
Config = Annotated[
    Path | None, typer.Option("--config", help="The configuration file.", metavar="FILE", parser=Path)
]
Notes = Annotated[
    Path, typer.Option("--notes", help="The folder that holds the notes.", metavar="PATH", parser=Path)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsUser = Annotated[
    str | None, typer.Option("--as", help="A name of the directory, or a SID.", metavar="USER")
]
Share = Annotated[str | None, typer.Option("--share", help="Only this share.", metavar="S")]


@app.callback()
def _start(
    context: typer.Context,
    config: Config = None,
) -> None:
    """Keep an index of shared notes in step with them, and see how it stands.

    Without --config: $NOTEWARDEN_CONFIG, ./config.toml (never as root), ~/.config/notewarden/config.toml,
    /etc/notewarden/config.toml. `notewarden --version` prints the version.
    """
    context.obj = config


@app.command("init")
def init(
    context: typer.Context,
    notes: Notes,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing configuration.")] = False,
) -> int:
    """Write a configuration for one folder.

    Whoever may read a file on this machine may find it.
    """
    from indexer.init import write_config

    target = context.obj or Path("config.toml")
    folder = write_config(notes, target, force=force)
    out(f"Wrote {shown(os.fsencode(target))} for the notes in {shown(os.fsencode(folder))}.")
    named = context.obj is not None or os.geteuid() == 0  # root never looks at ./config.toml
    option = f" --config {shown(os.fsencode(target))}" if named else ""
    out(f"Next: notewarden{option} sync")
    return 0


@app.command("sync")
def sync(
    context: typer.Context,
    full: Annotated[bool, typer.Option("--full", help="Hash every note anew.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
    as_json: Json = False,
) -> int:
    """Bring the index to what stands in the shares."""
    from indexer.start import settings_of
    from indexer.syncing import Wish, run_sync

    return run_sync(settings_of(context.obj), Wish(full=full, dry_run=dry_run, as_json=as_json))


@app.command("run")
def run(context: typer.Context) -> int:
    """Be the daemon: poll by the schedule until told to end.

    SIGTERM ends it at the next note, SIGHUP lets it read the configuration again.
    """
    from indexer.serving import run_daemon

    return run_daemon(context.obj)


@app.command("status")
def status(context: typer.Context, as_json: Json = False) -> int:
    """Show how the index stands.

    The exit code is 1 if something needs a look.
    """
    from db.pool import Database
    from indexer.start import settings_of
    from indexer.status import read_status
    from indexer.statustext import as_text

    settings = settings_of(context.obj)
    with Database.open(settings) as database, database.owner() as conn:
        found = read_status(conn, settings)
    if settings.embedding.provider == "hash":
        say("the embedding model is `hash`, which is for tests: search by meaning finds nothing useful")
    if as_json:
        out_json(found.as_json())
    else:
        out(as_text(found))
    return 0 if found.healthy else 1


@app.command("reindex")
def reindex(
    context: typer.Context,
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH...", help="Notes or folders.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every note.")] = False,
    share: Share = None,
) -> int:
    """Index notes again.

    Their old rows serve until the new ones stand. A parked note is tried again.
    """
    from indexer.start import settings_of
    from indexer.syncing import run_reindex
    from notewarden.errors import UsageError

    if everything == bool(paths):
        raise UsageError("Give the notes or folders to index again, or --all.")
    return run_reindex(settings_of(context.obj), None if everything else paths, share)


@app.command("confirm-deletes")
def confirm_deletes(
    context: typer.Context,
    share: Share = None,
    emptied: Annotated[
        bool, typer.Option("--emptied", help="The share was really emptied (needs --share).")
    ] = False,
) -> int:
    """Delete notes that are held.

    Where many notes are gone at once, their rows are held, hidden from everybody, until it is sure or said
    here that they were deleted. Each name is looked for once more.
    """
    from indexer.start import settings_of
    from indexer.syncing import run_confirm
    from notewarden.errors import UsageError

    if emptied and share is None:
        raise UsageError("--emptied needs --share S: say which share was emptied.")
    return run_confirm(settings_of(context.obj), share, emptied=emptied)


@app.command("chunks")
def chunks(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A note.")],
    as_json: Json = False,
) -> int:
    """Show how a file is cut into chunks."""
    from indexer import cuts
    from indexer.chunking import as_json as to_json

    note = cuts.cut_file(file, context.obj)
    if as_json:
        out_json(to_json(note))
    else:
        out(cuts.as_text(note))
    return 0


@app.command("readable")
def readable(
    context: typer.Context,
    user: Annotated[str, typer.Option("--as", help="A name of the directory, or a SID.", metavar="USER")],
    as_json: Json = False,
) -> int:
    """List every note that a user may read."""
    from acl.directory import make_directory
    from db.pool import Database
    from indexer import readable as listing
    from indexer.start import settings_of

    settings = settings_of(context.obj)
    directory = make_directory(settings)
    account = directory.user(user)
    with Database.open(settings) as database:
        places = listing.readable_places(database, directory, account)
    if as_json:
        out_json(listing.as_json(account, places))
    elif places:
        out(listing.as_text(places))
    else:
        say(f"{account.name} may read no note")
    return 0


@app.command("why")
def why(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The note: PATH or SHARE:PATH.")],
    user: AsUser = None,
    share: Share = None,
    as_json: Json = False,
) -> int:
    """Tell who may read a note and why.

    With --as, why this user may or may not; without, who may, layer by layer.
    """
    from indexer.start import settings_of
    from indexer.why import explained

    found = explained(settings_of(context.obj), path, user, share)
    for doubt in found.doubts:
        say(doubt)
    if as_json:
        out_json(found.as_json())
    else:
        out(found.as_text())
    return 0


@app.command("doctor")
def doctor(context: typer.Context, as_json: Json = False) -> int:
    """Look at everything that can be wrong, and say what to do.

    The exit code is 2 if something is. Nothing is changed, and nothing is spent.
    """
    from indexer import doctor as examination

    checks = examination.examine(context.obj)
    told = examination.as_json(checks)
    if as_json:
        out_json(told)
    else:
        out(examination.as_text(checks))
    return 0 if told["ok"] else 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `notewarden` and return its exit code. Errors are one sentence on stderr, never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        out(f"notewarden {version('notewarden')}")
        return 0
    from indexer.start import quiet_logging

    quiet_logging()
    for stop in (signal.SIGTERM, signal.SIGHUP):  # like Ctrl-C: the embedded server must not be left running
        signal.signal(stop, signal.default_int_handler)
    try:
        command: Any = typer.main.get_command(app)
        code = int(command.main(_config_first(given), prog_name="notewarden", standalone_mode=False) or 0)
        return _interrupted() if code == _INTERRUPTED else code  # typer tells of Ctrl-C by the code alone
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        close_quietly()
        return 0
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:  # the one place where any fault becomes a sentence
        return _failed(error)


def _interrupted() -> int:
    say("interrupted")
    return _INTERRUPTED


def _config_first(given: list[str]) -> list[str]:
    """Take `--config FILE` from wherever it stands to the front: it belongs to every command."""
    for place, word in enumerate(given):
        if word == "--":
            break
        if word == "--config" or word.startswith("--config="):
            width = 2 if word == "--config" else 1
            return given[place : place + width] + given[:place] + given[place + width :]
    return given


def _failed(error: Exception) -> int:
    """Say what went wrong: our errors and those of the command line know their sentence and exit code."""
    from indexer.start import DEBUG
    from notewarden.log import get_logger

    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    code = getattr(error, "exit_code", None)
    if not isinstance(code, int):
        get_logger(__name__).error("unexpected fault", exc_info=error)
        say(f"Unexpected fault ({type(error).__name__}); this is a bug, please report it.")
        return 1
    words = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        out(getattr(error, "message", ""))
    else:
        say(words() if words else str(error))
    return code


if __name__ == "__main__":
    sys.exit(main())
