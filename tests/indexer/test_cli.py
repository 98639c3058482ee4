"""`notewarden` as installed: help, configuration, `init` and `chunks`; none of it needs an index."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from support.command import Answer, run

from notewarden.settings import load_settings

COMMANDS = [
    "init",
    "sync",
    "run",
    "status",
    "reindex",
    "confirm-deletes",
    "chunks",
    "readable",
    "why",
    "doctor",
]
CHUNK_KEYS = ["seq", "heading", "first_line", "last_line", "start", "end", "text"]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "team notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Hello\n\nThe certificate ends in March.\n")
    return folder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "config.toml"


def init(notes: Path, config: Path, *more: str) -> Answer:
    return run("--config", str(config), "init", "--notes", str(notes), *more)


def refused(answer: Answer, code: int, *words: str) -> None:
    assert answer.code == code
    for word in words:
        assert word in answer.sentence()


def test_help_lists_what_there_is_and_version_tells_it() -> None:
    lines = run("--help").out.split("Commands:")[1].splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == COMMANDS
    assert run("--version").out.startswith("notewarden ")
    assert run().code == 2


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["sync", "--bogus"], ["readable"], ["init"], ["why"], ["chunks"], ["--config"]]
)
def test_wrong_use_is_exit_2_and_one_sentence(arguments: list[str]) -> None:
    refused(run(*arguments), 2)


@pytest.mark.parametrize("command", [["sync"], ["status"], ["reindex", "--all"], ["readable", "--as", "x"]])
def test_no_configuration_is_exit_2_with_the_remedy(tmp_path: Path, command: list[str]) -> None:
    refused(run(*command, cwd=tmp_path), 2, "notewarden init")


def test_the_environment_names_a_configuration_and_a_bad_key_is_named(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("[deletes]\nhold_counts = 3\n")
    answer = run("status", env={"NOTEWARDEN_CONFIG": str(file)}, cwd=tmp_path)
    refused(answer, 2, str(file), "[deletes]", "hold_counts")


def test_root_does_not_look_at_the_folder_it_stands_in(tmp_path: Path, as_root: None) -> None:
    (tmp_path / "config.toml").write_text("[nonsense")
    refused(run("status", cwd=tmp_path), 2, "There is no configuration")


def test_a_configuration_that_others_may_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    refused(run("--config", str(file), "status"), 2, "chmod")


def test_config_may_stand_behind_the_command(tmp_path: Path) -> None:
    refused(run("status", "--config", str(tmp_path / "none.toml")), 2, str(tmp_path / "none.toml"))


def test_init_writes_what_the_contract_says(notes: Path, config: Path, clean_environment: Path) -> None:
    answer = init(notes, config)
    assert (answer.code, answer.err) == (0, "")
    assert config.stat().st_mode & 0o777 == 0o600
    made = tomllib.loads(config.read_text())
    assert made["share"] == [
        {
            "name": "team notes",
            "path": str(notes),
            "acl": {"source": "posix", "model": "posix", "guards": "posix_x"},
        }
    ]
    assert made["directory"] == {"source": "nss"}
    assert made["database"] == {"url": "embedded"}
    assert made["embedding"]["provider"] == "local"
    home = clean_environment / ".local/state/notewarden"
    assert Path(made["state_dir"]).parent == home
    assert load_settings(config).shares[0].path == notes
    assert [file.name for file in config.parent.iterdir()] == ["config.toml"]


def test_init_takes_a_relative_folder_and_keys_the_index_by_it(notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "x" / notes.name
    other.mkdir(parents=True)
    for number, (given, folder) in enumerate([(notes.name, notes), (f"x/../x/{notes.name}", other)]):
        answer = run("--config", f"{number}.toml", "init", "--notes", given, cwd=tmp_path)
        assert answer.code == 0, answer.err
        assert tomllib.loads((tmp_path / f"{number}.toml").read_text())["share"][0]["path"] == str(folder)
    states = {tomllib.loads((tmp_path / f"{n}.toml").read_text())["state_dir"] for n in (0, 1)}
    assert len(states) == 2


def test_init_writes_to_the_folder_it_stands_in_and_says_what_comes_next(notes: Path, tmp_path: Path) -> None:
    answer = run("init", "--notes", str(notes), cwd=tmp_path)
    assert answer.code == 0
    assert (tmp_path / "config.toml").is_file()
    next_command = answer.out.splitlines()[-1]
    assert ("--config config.toml" in next_command) is (os.geteuid() == 0)


def test_init_replaces_nothing_unless_forced(notes: Path, config: Path) -> None:
    config.parent.mkdir()
    config.write_text("# mine\n")
    refused(init(notes, config), 2, "--force")
    assert config.read_text() == "# mine\n"
    assert init(notes, config, "--force").code == 0
    assert "posix_x" in config.read_text()


def test_init_takes_no_place_inside_the_notes(notes: Path, config: Path) -> None:
    refused(init(notes, notes / "config.toml"), 2, "inside the notes")
    link = notes.parent / "link"
    link.symlink_to(notes)
    refused(init(notes, link / "config.toml"), 2, "inside the notes")
    answer = run(
        "--config", str(config), "init", "--notes", str(notes), env={"XDG_STATE_HOME": f"{link}/state"}
    )
    refused(answer, 2, "XDG_STATE_HOME")
    assert not config.exists()
    assert [file.name for file in notes.iterdir()] == ["a.md"]


def test_init_refuses_a_mount_without_real_modes_and_says_what_to_do(config: Path) -> None:
    refused(init(Path("/proc"), config), 2, '"declared"', "[[share.acl.rule]]")
    assert not config.exists()


def test_init_refuses_what_is_no_folder_or_cannot_be_trusted(
    notes: Path, config: Path, tmp_path: Path
) -> None:
    refused(init(notes / "a.md", config), 2, "not a folder")
    refused(init(notes / "none", config), 2, "not a folder")
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    refused(init(notes, open_folder / "config.toml"), 2, "chmod")
    assert list(open_folder.iterdir()) == []


def test_init_writes_a_name_that_toml_must_escape(tmp_path: Path, config: Path) -> None:
    folder = tmp_path / 'a"b\\c\x7f\ttab:colon'
    folder.mkdir()
    assert init(folder, config).code == 0
    share = load_settings(config).shares[0]
    assert (share.path, share.name) == (folder, 'a"b-c--tab-colon')


def test_chunks_needs_neither_configuration_nor_index(notes: Path) -> None:
    raw = b"\xef\xbb\xbf---\ntitle: T\n---\n# One `x` #\n\nText.\n\n## Two\n\n" + b"More words here. " * 300
    (notes / "b.md").write_bytes(raw)
    answer = run("chunks", "b.md", "--json", cwd=notes)
    assert (answer.code, answer.err) == (0, "")
    assert list(answer.json) == ["path", "encoding", "chunks"]
    assert answer.json["path"] == "b.md"
    chunks = answer.json["chunks"]
    assert all(list(chunk) == CHUNK_KEYS for chunk in chunks)
    assert [chunk["seq"] for chunk in chunks] == list(range(len(chunks)))
    assert [chunk["start"] for chunk in chunks] == [0, *(chunk["end"] for chunk in chunks[:-1])]
    assert chunks[-1]["end"] == len(raw)
    assert chunks[0]["text"].startswith("# One")
    assert (chunks[0]["heading"], chunks[-1]["heading"]) == (["One x"], ["One x", "Two"])


def test_chunks_for_people_shows_heading_lines_and_tokens(notes: Path) -> None:
    (notes / "a.md").write_text("# Hello\n\nThe certificate\x1b[31m ends in March.\n")
    out = run("chunks", "a.md", cwd=notes).out
    assert out.startswith("[0] Hello (lines 1-3, ")
    assert " tokens)" in out
    assert "\\x1b[31m" in out


def test_chunks_goes_by_a_configurations_budget(notes: Path, tmp_path: Path) -> None:
    (notes / "b.md").write_text("A few words in a row. " * 200)
    file = tmp_path / "small.toml"
    file.write_text("[chunking]\nmax_tokens = 128\n")
    usual = len(run("chunks", "b.md", "--json", cwd=notes).json["chunks"])
    small = len(run("--config", str(file), "chunks", "b.md", "--json", cwd=notes).json["chunks"])
    assert small > usual
    file.write_text("[chunking]\nmax_tokens = 'x'\n")
    refused(run("--config", str(file), "chunks", "b.md", cwd=notes), 2, "max_tokens")
    answer = run("chunks", "b.md", "--json", cwd=notes, env={"NOTEWARDEN_CONFIG": str(file)})
    assert (answer.code, len(answer.json["chunks"])) == (0, usual)
    assert "max_tokens" in answer.sentence()


def test_chunks_of_what_is_no_note(notes: Path) -> None:
    (notes / "empty.md").write_bytes(b"")
    (notes / "binary.md").write_bytes(bytes(range(256)) * 20)
    assert run("chunks", "empty.md", "--json", cwd=notes).json["chunks"] == []
    assert run("chunks", "empty.md", cwd=notes).code == 0
    refused(run("chunks", "binary.md", cwd=notes), 3, "binary.md")
    refused(run("chunks", "none.md", cwd=notes), 2, "none.md")
    refused(run("chunks", ".", cwd=notes), 2)
    name = os.fsdecode(b"b\xff.md")
    (notes / name).write_text("# B\n\nText.\n")
    assert run("chunks", name, "--json", cwd=notes).json["path"] == "b\\xff.md"


def test_a_fault_of_ours_is_one_sentence_and_a_traceback_only_on_demand(notes: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import indexer.cuts as cuts\ndef cut_file(*_): raise ZeroDivisionError('secret text')\n"
        "cuts.cut_file = cut_file\n"
    )
    env = {"PYTHONPATH": str(broken)}
    answer = run("chunks", "a.md", cwd=notes, env=env)
    assert answer.code == 1
    assert "Unexpected fault (ZeroDivisionError)" in answer.err
    assert "Traceback" not in answer.err
    assert "secret text" not in answer.err
    assert "Traceback" in run("chunks", "a.md", cwd=notes, env={**env, "NOTEWARDEN_DEBUG": "1"}).err
