"""`ask`: the team's command. This module imports the standard library and typer only, the rest lazily."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

if TYPE_CHECKING:
    from answerer.door import Tell, Told, Wish

_COMMANDS = ("search", "show", "status", "eval", "chat", "forget")
_INTERRUPTED = 130

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, suggest_commands=False
)

# With `parser` typer does not look at the path itself, which on a dead mount would never end.
Config = Annotated[
    Path | None, typer.Option("--config", help="The configuration file.", metavar="FILE", parser=Path)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Share = Annotated[str | None, typer.Option("--share", help="Only this share.", metavar="S")]
Folders = Annotated[
    list[str] | None, typer.Option("--folder", help="Only this folder and all below.", metavar="F")
]
Many = Annotated[int, typer.Option("-k", help="How many passages to look at.", metavar="N", min=1, max=1000)]
AsUser = Annotated[
    str | None, typer.Option("--as", help="With this user's rights (root and admins).", metavar="USER")
]
NoSync = Annotated[bool, typer.Option("--no-sync", help="Take the index as it is.")]
Continue = Annotated[bool, typer.Option("-c", "--continue", help="Go on from your last question.")]
Words = Annotated[list[str] | None, typer.Argument(help="The words; `-` reads them from standard input.")]


@app.command("question", options_metavar="[--config FILE] [OPTIONS]")
def question(
    words: Words = None,
    folder: Folders = None,
    share: Share = None,
    k: Many = 8,
    continued: Continue = False,
    as_json: Json = False,
    as_user: AsUser = None,
    no_sync: NoSync = False,
    config: Config = None,
) -> int:
    """Answer a question from the notes you may read, each sentence with its source.

    Other commands: `ask search WORDS`, `ask show PATH`, `ask chat`, `ask forget`, `ask status`,
    `ask eval FILE`, each with --help; `ask -- search` asks about the word itself; `ask --version`.
    """
    from answerer.door import open_door

    fields = {"question": _joined(words), "folders": folder or [], "share": share, "k": k, "as": as_user}
    with open_door(config, sync=not no_sync) as tell:
        return _answer(tell, {**fields, "continued": continued or None}, as_json)


@app.command("chat")
def chat(
    folder: Folders = None,
    share: Share = None,
    k: Many = 8,
    no_sync: NoSync = False,
    config: Config = None,
) -> int:
    """Ask one question after the other, each on from the last; an empty line or Ctrl-D ends it."""
    from answerer.door import open_door

    fields = {"folders": folder or [], "share": share, "k": k}
    with open_door(config, sync=not no_sync) as tell:
        continued = None
        while words := _asked():
            try:
                _answer(tell, {**fields, "question": words, "continued": continued}, False)
                continued = True
            except Exception as error:  # one question's trouble ends no conversation
                _failed(error)
    return 0


@app.command("forget")
def forget(config: Config = None) -> int:
    """Delete all your conversations."""
    told = _tell(config, True, "forget", {})
    _out(f"Forgot {told.body['conversations']} conversations.")
    return 0


@app.command("search", context_settings={"ignore_unknown_options": True})
def search(
    words: Words = None,
    folder: Folders = None,
    share: Share = None,
    k: Many = 8,
    as_json: Json = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the rank in each leg (admins).")] = False,
    as_user: AsUser = None,
    no_sync: NoSync = False,
    config: Config = None,
) -> int:
    """List the passages that fit best; "a phrase" must stand in them, a -word must not."""
    for word in words or []:
        if word.startswith("--"):
            raise typer.BadParameter(f"There is no option {word}; put -- before words that begin with --.")
    fields = {"words": _joined(words), "folders": folder or [], "share": share, "k": k, "as": as_user}
    told = _tell(config, no_sync, "search", {**fields, "explain": explain})
    if told.body["results"] or as_json:
        _print(told, as_json, "results")
    return _code(told.body["results"], as_json, "There is nothing to show among the notes you may read.")


@app.command("show")
def show(
    path: Annotated[str, typer.Argument(help="The note: PATH or SHARE:PATH.")],
    lines: Annotated[str | None, typer.Option("--lines", help="Only these lines.", metavar="A-B")] = None,
    share: Share = None,
    as_json: Json = False,
    as_user: AsUser = None,
    no_sync: NoSync = False,
    config: Config = None,
) -> int:
    """Show a note, or some of its lines."""
    told = _tell(config, no_sync, "show", {"path": path, "lines": lines, "share": share, "as": as_user})
    _print(told, as_json, "note")
    return 0


@app.command("status")
def status(
    as_json: Json = False, as_user: AsUser = None, no_sync: NoSync = False, config: Config = None
) -> int:
    """Show who you are here, how old the index is and how many notes you may read."""
    _print(_tell(config, no_sync, "status", {"as": as_user}), as_json, "state")
    return 0


@app.command("eval")
def evaluate(
    file: Annotated[Path, typer.Argument(help="Questions with their gold passages, JSONL.")],
    as_json: Json = False,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Earlier --json output; worse figures: exit 1.")
    ] = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Let the small model judge each answer; costs a request each.")
    ] = False,
    no_sync: NoSync = False,
    config: Config = None,
) -> int:
    """Measure search and refusals on questions whose passages are known."""
    from answerer import evaluation
    from answerer.door import open_door

    questions = evaluation.read_questions(file)
    earlier = evaluation.read_baseline(baseline) if baseline else None
    with open_door(config, sync=not no_sync) as tell:
        figures = evaluation.evaluate(questions, tell, judged=judge)
    _out(evaluation.as_json(figures) if as_json else evaluation.as_text(figures))
    worse = evaluation.worse(figures, earlier) if earlier else []
    for name in worse:
        _say(f"{name} is worse than in the baseline")
    return 1 if worse else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `ask` and return its exit code. Errors are one sentence on stderr, never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["--version"]:
            return _version()
        name, rest = _routed(given)
        command = _command(name)
        shown = "ask" if name == "question" else f"ask {name}"
        return int(command.main(rest, prog_name=shown, standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        _close_quietly()
        return 0
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:  # the one place where any fault becomes a sentence
        return _failed(error)


def _routed(given: list[str]) -> tuple[str, list[str]]:
    """Return the command and its arguments: bare words are a question, --config may stand before all."""
    ahead: list[str] = []
    while given and (given[0] == "--config" or given[0].startswith("--config=")):
        width = 2 if given[0] == "--config" else 1
        ahead, given = [*ahead, *given[:width]], given[width:]
    if given and given[0] in _COMMANDS:
        return given[0], [*ahead, *given[1:]]
    return "question", [*ahead, *given]


def _command(name: str) -> Any:
    group: Any = typer.main.get_command(app)
    return group.commands[name]


def _version() -> int:
    from importlib.metadata import version

    _out(f"notewarden {version('notewarden')}")
    return 0


def _joined(words: list[str] | None) -> str:
    if words == ["-"]:
        return sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    return " ".join(words or ()).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _asked() -> str:
    """Return the next question of a chat, "" at its end."""
    if sys.stdin.isatty():
        sys.stdout.write("\n? ")
        sys.stdout.flush()
    return sys.stdin.buffer.readline().decode("utf-8", "replace").strip()


def _answer(tell: Tell, fields: dict[str, Any], as_json: bool) -> int:
    """Ask, show the answer as it comes and then where it stands; returns the exit code."""
    from answerer import present
    from answerer.door import Wish

    live = present.Live(_write)
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        told = tell(Wish("ask", given, _nowhere if as_json else live.feed, streams=not as_json))
    finally:
        live.end()
    for notice in told.notices:
        _say(notice)
    if as_json:
        _print(told, True, "answer")
    elif told.body["found"]:
        _print(told, False, "sources" if live.shown else "answer")
    return _code(told.body["found"], as_json, "The notes you may read do not answer this.")


def _nowhere(_: str) -> None:
    """Show nothing: JSON is printed when it is whole."""


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def _tell(config: Path | None, no_sync: bool, action: str, fields: dict[str, Any]) -> Told:
    from answerer.door import Wish, open_door

    wish: Wish = Wish(action, {name: value for name, value in fields.items() if value is not None})
    with open_door(config, sync=not no_sync) as tell:
        told = tell(wish)
    for notice in told.notices:
        _say(notice)
    return told


def _print(told: Told, as_json: bool, kind: str) -> None:
    from answerer import present

    _out(present.as_json(told.body) if as_json else present.as_text(kind, told.body, sys.stdout.isatty()))


def _code(found: object, as_json: bool, sentence: str) -> int:
    if not found and not as_json:
        _say(sentence)
    return 0 if found else 3


def _failed(error: Exception) -> int:
    """Say what went wrong: our errors and those of the command line know their sentence and exit code."""
    code = getattr(error, "exit_code", None)
    if not isinstance(code, int):
        _say(f"Unexpected fault ({type(error).__name__}); this is a bug, please report it.")
        return 1
    words = getattr(error, "format_message", None)
    _say(words() if words else str(error))
    return code


def _out(text: str) -> None:
    """Write to standard output in UTF-8 whatever the locale, so that no name can break it."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def _say(sentence: str) -> None:
    from notewarden.display import printable

    shown = printable(sentence.strip()).encode("utf-8", "backslashreplace")
    sys.stderr.buffer.write(b"ask: " + shown + b"\n")
    sys.stderr.buffer.flush()


def _close_quietly() -> None:
    """Let the interpreter's last flush go nowhere once the reader has gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
