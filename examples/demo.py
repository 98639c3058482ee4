"""What `make demo` runs: the sample share asked by two people, or any folder asked by whoever runs it.

Everything it writes lies in one folder under your state home; the sample and the clone stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
COMMANDS = Path(sys.executable).parent

QUESTION = "What is the highest salary in band G6 for a senior engineer?"
ASKERS = (("ines", "heads human resources"), ("rosa", "works in production; may not read the salaries"))
OWN_QUESTION = "What are these notes about?"

SAMPLE = """\
# Written by `make demo`. The people are in people.toml beside this file.
state_dir = "{state}"

[directory]
source = "file"
file = "{people}"

[[share]]
name = "notes"
path = "{notes}"

"""


def main() -> int:
    """Run the demo and return its exit code: that of the first command that failed, or 0."""
    parser = argparse.ArgumentParser(description="Shows what notewarden does.")
    parser.add_argument("--notes", type=Path, help="a folder of Markdown notes of your own")
    parser.add_argument("--question", help="what to ask")
    options = parser.parse_args()
    os.umask(0o077)
    if options.notes is not None:
        return own_notes(options.notes.expanduser().absolute(), options.question or OWN_QUESTION)
    return sample(options.question or QUESTION)


def sample(question: str) -> int:
    """Index the sample share and ask one question as two people."""
    folder = demo_folder(EXAMPLES / "notes")
    config = folder / "config.toml"
    write_sample_config(folder, config)
    say("The sample: notes of an invented company, in folders with different readers (examples/README.md).")
    code = run("notewarden", "--config", str(config), "sync")
    if code:
        return code
    say("The same question, asked by two people:")
    for name, who in ASKERS:
        print(f"\n  {name} {who}.")
        code = run("ask", "--config", str(config), "--no-sync", "--as", name, question)
        if code not in (0, 3):  # 3: not in the notes that this person may read
            return code
    say(
        "Why: every note has readers, and the search looks only at what the asker may read. See for yourself:"
    )
    for arguments in (
        ["notewarden", "--config", str(config), "why", "hr/salaries/salary-bands-2026.md", "--as", "rosa"],
        ["ask", "--config", str(config), "--as", "karl", "Wie viel Rabatt bekommt ein Händler ab 50 Stück?"],
    ):
        print("  " + shlex.join([relative(arguments[0]), *arguments[1:]]))
    return 0


def own_notes(notes: Path, question: str) -> int:
    """Index a folder and answer for the account that runs this."""
    if not notes.is_dir():
        print(f"{notes} is no folder; give NOTES=/path/to/a/folder/of/notes.", file=sys.stderr)
        return 2
    config = demo_folder(notes) / "config.toml"
    if not config.exists():
        code = run("notewarden", "--config", str(config), "init", "--notes", str(notes))
        if code:
            return code
    code = run("notewarden", "--config", str(config), "sync")
    if code not in (0, 6):  # 6: some notes could not be read, and were named
        return code
    return run("ask", "--config", str(config), "--no-sync", question)


def demo_folder(notes: Path) -> Path:
    """Return the demo's own folder for these notes, private to this account."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    key = hashlib.sha256(os.fsencode(notes)).hexdigest()[:12]
    folder = home / "notewarden" / f"demo-{key}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def write_sample_config(folder: Path, config: Path) -> None:
    """Write the sample's configuration and people, away from the clone: others may write there."""
    people = folder / "people.toml"
    people.write_bytes((EXAMPLES / "people.toml").read_bytes())
    head = SAMPLE.format(state=folder / "state", people=people, notes=EXAMPLES / "notes")
    rules = (EXAMPLES / "rules.toml").read_text(encoding="utf-8")
    config.write_text(head + rules, encoding="utf-8")


def run(command: str, *arguments: str) -> int:
    """Show a command as one would type it, run it, and return its exit code."""
    print("\n$ " + shlex.join([relative(command), *arguments]), flush=True)
    return subprocess.run([COMMANDS / command, *arguments], check=False).returncode


def relative(command: str) -> str:
    """Return the path of an installed command as typed from where we are."""
    return os.path.relpath(COMMANDS / command)


def say(text: str) -> None:
    """Print a line of the guide between the commands."""
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
