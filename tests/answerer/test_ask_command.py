"""The installed command, in process on an embedded index."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.answer_house import write_house

ASK = Path(sys.executable).parent / "ask"


def ask(config: Path, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [str(ASK), "--config", str(config), *words]
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, timeout=60)


def answer(config: Path, *words: str) -> dict[str, Any]:
    done = ask(config, *words, "--json", "--as", "anna")
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


CITATION = [
    "n",
    "share",
    "path",
    "heading",
    "first_line",
    "last_line",
    "quote",
    "link",
    "modified",
    "freshness",
]


def test_the_answer_has_the_documented_form(standing_house: Path) -> None:
    found = answer(standing_house, "What", "is", "the zebrafish bonus?")
    assert list(found) == ["question", "found", "answer", "citations", "model", "usage", "as_of"]
    assert found["question"] == "What is the zebrafish bonus?"
    assert list(found["citations"][0]) == CITATION
    assert found["citations"][0]["heading"] == ["Salaries"]
    assert found["as_of"].endswith("Z") and found["citations"][0]["modified"].endswith("Z")


def test_not_found_is_exit_3_with_one_sentence(standing_house: Path) -> None:
    done = ask(standing_house, "Where is the xylophone?", "--as", "ben")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.count(b"\n") == 1 and b"do not answer" in done.stderr
    done = ask(standing_house, "Where is the xylophone?", "--as", "ben", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 3
    assert (found["found"], found["answer"], found["citations"]) == (False, "", [])


def test_people_see_numbers_sources_and_no_control_character(standing_house: Path) -> None:
    done = ask(standing_house, "walrus password", "--as", "cleo")
    assert done.returncode == 0
    text = done.stdout.decode("utf-8")
    assert "[1] notes:handbook/evil.md" in text and "Extracts" in text
    assert not set(text) & {"\x1b", "\x9b", "\x07", "\u202e"}, "no link codes without a terminal either"
    assert r"\x1b]0;owned\x07" in text and r"\u202e" in text


def test_json_escapes_what_steers_a_terminal(standing_house: Path) -> None:
    raw = ask(standing_house, "search", "walrus", "--as", "cleo", "--json", "-k", "1").stdout
    assert not set(raw.decode("utf-8")) & {"\x1b", "\x9b", "\x07", "\u202e"}
    row = json.loads(raw)["results"][0]
    assert "\x1b[31m" in row["text"] and row["path"] == "handbook/evil.md"


def test_subcommand_words_can_be_asked_about(standing_house: Path) -> None:
    done = ask(standing_house, "--json", "--as", "anna", "--", "search", "the", "--lunch")
    assert json.loads(done.stdout)["question"] == "search the --lunch"
    done = ask(standing_house, "-", "--json", "--as", "anna", stdin=b"Wo liegt der Anhang?\n")
    assert json.loads(done.stdout)["question"] == "Wo liegt der Anhang?"


def test_search_show_and_status(standing_house: Path) -> None:
    done = ask(standing_house, "search", "leave", "-k", "3", "--as", "cleo", "--json", "--folder", "handbook")
    found = json.loads(done.stdout)
    assert list(found) == ["results", "as_of"] and len(found["results"]) == 3
    assert list(found["results"][0]) == ["share", "path", "heading", "first_line", "last_line", "text"]
    done = ask(standing_house, "show", "handbook/leave.md", "--lines", "7-7", "--as", "cleo", "--json")
    shown = json.loads(done.stdout)
    assert list(shown) == ["share", "path", "modified", "text"]
    assert shown["text"] == "Everybody has thirty days of leave a year.\n"
    done = ask(standing_house, "status", "--as", "anna", "--json")
    state = json.loads(done.stdout)
    assert (state["user"], state["groups"]) == ("anna", ["hr"])


def test_hidden_and_absent_are_one(standing_house: Path) -> None:
    hidden, absent = (
        ask(standing_house, "show", path, "--as", "cleo") for path in ("hr/salaries.md", "x.md")
    )
    assert hidden.returncode == absent.returncode == 3
    assert (hidden.stdout, hidden.stderr) == (absent.stdout, absent.stderr)
    hidden, absent = (
        ask(standing_house, "search", "leave", "--folder", one, "--as", "cleo") for one in ("hr", "x")
    )
    assert hidden.returncode == absent.returncode == 3
    assert (hidden.stdout, hidden.stderr) == (absent.stdout, absent.stderr)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        (("what", "--bogus"), 2),
        (("what", "-k", "0"), 2),
        (("search", "--jsn"), 2),
        (("show", "handbook/leave.md", "--lines", "x"), 2),
        (("what", "--as", "nobody"), 5),
        (("eval", "/nowhere.jsonl"), 2),
    ],
)
def test_errors_are_one_sentence_with_their_code(
    standing_house: Path, words: tuple[str, ...], code: int
) -> None:
    done = ask(standing_house, *words)
    assert done.returncode == code
    assert done.stdout == b"" and done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"ask: ")


def test_a_missing_configuration_is_exit_2(tmp_path: Path) -> None:
    assert ask(tmp_path / "none.toml", "what").returncode == 2


def test_a_configured_but_dead_socket_is_exit_8(standing_house: Path, tmp_path: Path) -> None:
    config = tmp_path / "dead.toml"
    config.write_text(
        standing_house.read_text("utf-8") + '[answerer]\nsocket = "/tmp/no-such.sock"\n', "utf-8"
    )
    config.chmod(0o600)
    done = ask(config, "what is the zebrafish bonus", "--as", "anna")
    assert done.returncode == 8 and b"zebrafish" not in done.stdout
    assert done.stderr.count(b"\n") == 1


def test_a_configuration_that_others_can_write_is_refused(standing_house: Path, tmp_path: Path) -> None:
    config = tmp_path / "open.toml"
    config.write_text(standing_house.read_text("utf-8"), "utf-8")
    config.chmod(0o666)
    assert ask(config, "what").returncode == 2


def test_evaluation_counts_hits_and_refusals(standing_house: Path, tmp_path: Path) -> None:
    gold = {"path": "hr/salaries.md", "text": "ZEBRAFISH bonus"}
    questions = [
        {"id": "a", "question": "What is the zebrafish bonus?", "as": "anna", "gold": [gold]},
        {"id": "b", "question": "What is the zebrafish bonus?", "as": "ben", "answerable": False, "gold": []},
    ]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, questions)), "utf-8")
    done = ask(standing_house, "eval", str(file), "--json")
    assert done.returncode == 0, done.stderr
    every = json.loads(done.stdout)["all"]
    assert (every["hit_at_5"], every["unanswerable_refused"], every["answerable_refused"]) == (1.0, 1, 0)
    better = tmp_path / "better.json"
    better.write_text(json.dumps({"all": {**every, "unanswerable_refused": 2}}), "utf-8")
    assert ask(standing_house, "eval", str(file), "--baseline", str(better)).returncode == 1
    file.write_text('{"id": "a"}', "utf-8")
    assert ask(standing_house, "eval", str(file)).returncode == 2


def test_the_thin_command_imports_nothing_but_typer() -> None:
    script = (
        "import sys; from answerer.ask import main; main(['--version']);"
        "print(sorted({name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    version, loaded = done.stdout.splitlines()
    assert version.startswith("notewarden ")
    bare = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            script.replace("from answerer.ask import main; main(['--version'])", "import typer"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(eval(loaded)) - set(eval(bare.stdout)) <= {"answerer", "notewarden"}


def test_ctrl_c_is_130(standing_house: Path) -> None:
    command = [str(ASK), "--config", str(standing_house), "-", "--as", "anna"]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert running.stdin is not None
        running.stdin.write(b"half a question")
        running.stdin.flush()
        _wait_until_it_reads(running.pid)
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
    finally:
        running.kill()
        running.communicate()


def _wait_until_it_reads(pid: int) -> None:
    """Until the process sleeps with nothing left to do but read its input."""
    seen = 0
    while seen < 5:
        time.sleep(0.05)
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        seen = seen + 1 if fields[0] == "S" else 0


def test_a_question_finds_what_was_written_since_the_last_poll(tmp_path: Path) -> None:
    folder = tmp_path / "late"
    folder.mkdir(mode=0o700)
    config = write_house(folder, '[schedule]\npoll = "1s"\n').file
    first = ask(config, "walrus password", "--as", "cleo", "--no-sync")
    assert first.returncode == 7, "nothing is indexed yet"
    assert ask(config, "walrus password", "--as", "cleo").returncode == 0
    (folder / "notes/handbook/new.md").write_text("# New\n\nThe axolotl moved in.\n", "utf-8")
    time.sleep(1.1)  # the poll that is due
    assert ask(config, "axolotl", "--as", "cleo", "--no-sync").returncode == 3
    done = ask(config, "axolotl", "--as", "cleo")
    assert done.returncode == 0 and b"new.md" in done.stdout
    (folder / "notes").rename(folder / "gone")
    time.sleep(1.1)
    done = ask(config, "axolotl", "--as", "cleo")
    assert done.returncode == 0 and b"new.md" in done.stdout, "the index answers"


def test_who_asks_is_known_before_an_index_is_opened(tmp_path: Path) -> None:
    write_house(tmp_path)
    config = tmp_path / "config.toml"
    told = ask(config, "--no-sync", "--as", "nosuch", "leave")
    assert (told.returncode, b"nosuch" in told.stderr) == (5, True), told.stderr
    assert ask(config, "--no-sync", "--as", "anna", "leave").returncode == 7, "nothing was ever indexed"
