"""The configuration: what is accepted, what is refused, and that a refusal names file, section and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from datetime import time, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from notewarden.errors import ConfigError
from notewarden.settings import Settings, find_config, load_settings, parse_settings

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
SHARE = '[[share]]\nname = "hr"\npath = "/srv/hr"\n'
DECLARED = SHARE + '[share.acl]\nsource = "declared"\n'


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Settings]:
    def load_text(text: str) -> Settings:
        file = tmp_path / "config.toml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        return load_settings(file)

    return load_text


def test_the_example_loads_and_shows_the_defaults(load: Callable[[str], Settings]) -> None:
    shown = load(EXAMPLE.read_text(encoding="utf-8"))
    plain = load('[[share]]\nname = "notes"\npath = "/srv/notes"\n[share.acl]\nsource = "posix"\n')
    assert shown == plain


def keys_of(model: type[BaseModel], section: str = "") -> Iterator[tuple[str, str]]:
    """Yield (section, key) of every setting, as they are written in TOML."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        inner = [found for found in types_in(field.annotation) if issubclass(found, BaseModel)]
        yield (section, key)
        if inner and key != "prices":
            yield from keys_of(inner[0], f"{section}.{key}".strip("."))


def types_in(annotation: Any) -> list[type]:
    arguments = getattr(annotation, "__args__", ())
    if not arguments:
        return [annotation] if isinstance(annotation, type) else []
    return [found for argument in arguments for found in types_in(argument)]


def test_the_example_names_every_key() -> None:
    written: set[tuple[str, str]] = set()
    section = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if header := re.fullmatch(r"(?:# )?\[\[?([a-z.]+)\]?\]", line):
            section = header.group(1)
            outer, _, inner = section.rpartition(".")
            written.add((outer, inner))
        elif key := re.match(r"(?:# )?([a-z_0-9]+) = .+#|(?:# )?([a-z_0-9]+) = ", line):
            written.add((section, key.group(1) or key.group(2)))
    assert set(keys_of(Settings)) - written == set()
    assert written - set(keys_of(Settings)) == set()


@pytest.mark.parametrize(
    ("text", "section_and_key", "remedy"),
    [
        ("foo = 1", "foo", "known key"),
        ("[embedding]\ndimensoin = 384", "[embedding] dimensoin", "dimension"),
        ("[embedding]\nprovider = 'ollama'", "[embedding] provider", "voyage"),
        ("[embedding]\nbase_url = 'http://example.com'", "[embedding] base_url", "https"),
        ("[embedding]\nbase_url = 'http://127.0.0.1.example.com/'", "[embedding] base_url", "https"),
        ("[embedding]\nbase_url = 'https://me:pw@example.com/'", "[embedding] base_url", "without"),
        ("[answer]\nbase_url = 'http://10.0.0.1'", "[answer] base_url", "https"),
        ("[embedding]\nmodel_path = 'x.onnx'", "[embedding]", "model_sha256"),
        ("[embedding]\nmodel_sha256 = 'abc'", "[embedding] model_sha256", "pattern"),
        (
            "[embedding]\nprovider = 'voyage'\n" + SHARE + "[share.acl]\nsource = 'posix'",
            "[[share]] external",
            "hr",
        ),
        ("[schedule]\npoll = '5 minutes'", "[schedule] poll", '"5m"'),
        ("[schedule]\npoll = '0s'", "[schedule] poll", '"5m"'),
        ("[schedule]\npoll = 300", "[schedule] poll", '"5m"'),
        ("[schedule]\nacl = 'never'", "[schedule] acl", '"24h"'),
        ("[schedule]\nverify = '03:00'", "[schedule] verify", "daily 03:00"),
        ("[schedule]\nverify = 'daily 24:00'", "[schedule] verify", "daily 03:00"),
        ("[database]\nurl = 'mysql://x'", "[database] url", "postgresql://"),
        ("[database]\nreader_url = 'postgresql://x'", "[database]", "reader_url"),
        ("[directory]\nsource = 'file'", "[directory]", "file"),
        ("[directory]\nfile = 'people.toml'", "[directory]", "file"),
        ("[deletes]\nhold_share = 1.5", "[deletes] hold_share", "less than or equal to 1"),
        ("[chunking]\nmax_tokens = 400", "[chunking] max_tokens", "254"),
        ("[search]\nvector_weight = 0\nkeyword_weight = 0", "[search]", "keyword_weight"),
        ("[rerank]\nprovider = 'magic'", "[rerank] provider", "none"),
        ("[metrics]\nport = 1", "[metrics] port", "known here: listen"),
        ('[metrics]\nlisten = "0.0.0.0:9464"', "[metrics] listen", "of this machine"),
        ("database = 3", "database", "table"),
        (SHARE, "[[share]] acl", "missing"),
        (SHARE + "[share.acl]\n", "[share.acl] source", "missing"),
        (SHARE + "[share.acl]\nsource = 'smb'", "[share.acl]", "model must be said"),
        (SHARE + "[share.acl]\nsource = 'posix'\nmodel = 'nt'", "[share.acl]", '"posix"'),
        (SHARE + "external = 1\n[share.acl]\nsource = 'posix'", "[[share]] external", "boolean"),
        (SHARE + "link = 'javascript:x{path}'\n[share.acl]\nsource = 'posix'", "[[share]] link", "https:"),
        (SHARE + "link = 'https://x/{file}'\n[share.acl]\nsource = 'posix'", "[[share]] link", "{path}"),
        ("[[share]]\nname = 'hr'\npath = 'hr'\n[share.acl]\nsource = 'posix'", "[[share]] path", "absolute"),
        ("[[share]]\nname = 'a:b'\npath = '/hr'\n[share.acl]\nsource = 'posix'", "[[share]] name", "without"),
        (2 * (SHARE + "[share.acl]\nsource = 'posix'\n"), "[[share]] name", "its own name"),
        (
            "state_dir = '/srv/hr/.state'\n" + SHARE + "[share.acl]\nsource = 'posix'",
            "state_dir",
            "out of the notes",
        ),
        (
            DECLARED + "[[share.acl.rule]]\nfolder = '/hr'\nreaders = []",
            "[[share.acl.rule]] folder",
            "relative",
        ),
        (DECLARED + "[[share.acl.rule]]\nfolder = 'a/../b'\nreaders = []", "[[share.acl.rule]] folder", ".."),
        (DECLARED + "[[share.acl.rule]]\nfolder = 'a'", "[[share.acl.rule]] readers", "missing"),
        (DECLARED + 2 * "[[share.acl.rule]]\nfolder = 'a/'\nreaders = []\n", "[share.acl]", "join them"),
        (
            SHARE + "[share.acl]\nsource = 'posix'\n[[share.acl.rule]]\nfolder = ''\nreaders = []",
            "[share.acl]",
            "declared",
        ),
        ("[log\n", "", "not valid TOML"),
    ],
)
def test_a_fault_is_named_with_its_place_and_remedy(
    load: Callable[[str], Settings], tmp_path: Path, text: str, section_and_key: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as fault:
        load(text)
    message = str(fault.value)
    assert str(tmp_path / "config.toml") in message
    assert section_and_key in message
    assert remedy in message
    assert "\n" not in message
    assert fault.value.exit_code == 2


def test_a_fault_in_one_of_many_shares_names_it(load: Callable[[str], Settings]) -> None:
    with pytest.raises(ConfigError, match=r"\[\[share\.acl\.rule\]\] reader \(share \"hr\", rule \"pay\"\)"):
        load(DECLARED + "[[share.acl.rule]]\nfolder = 'pay'\nreaders = []\nreader = []")


def test_a_secret_in_the_wrong_place_is_not_repeated(load: Callable[[str], Settings]) -> None:
    with pytest.raises(ConfigError) as fault:
        load("[embedding]\napi_key = 'pa-hush'\nbase_url = 'http://user:hush@x'")
    assert "hush" not in str(fault.value)


def test_values_arrive_as_what_they_mean(load: Callable[[str], Settings]) -> None:
    made = load(
        '[schedule]\npoll = "90s"\nacl = "2h"\nverify = "off"\n'
        + DECLARED
        + 'max_age = "2d"\n[[share.acl.rule]]\nfolder = "./a//b/"\nreaders = ["x"]\ndenied = ["y"]\n'
    )
    assert made.schedule.poll == timedelta(seconds=90)
    assert made.schedule.acl == timedelta(hours=2)
    assert made.schedule.verify is None
    assert made.shares[0].acl.max_age == timedelta(days=2)
    assert made.shares[0].acl.model == "declared"
    assert made.shares[0].acl.guards == "bypass"
    assert [(rule.folder, rule.readers, rule.denied) for rule in made.shares[0].acl.rules] == [
        ("a/b", ["x"], ["y"])
    ]


def test_defaults_of_an_empty_file(load: Callable[[str], Settings]) -> None:
    made = load("")
    assert made.schedule.verify == time(3, 0)
    assert (made.embedding.model, made.embedding.dimension) == ("all-MiniLM-L6-v2", 384)
    assert made.shares == []


def test_voyage_brings_its_own_model_and_may_run_on_this_machine(load: Callable[[str], Settings]) -> None:
    made = load(
        "[embedding]\nprovider = 'voyage'\nbase_url = 'http://127.0.0.1:8080/v1'\n"
        + SHARE
        + "[share.acl]\nsource = 'posix'"
    )
    assert (made.embedding.model, made.embedding.dimension) == ("voyage-4", 1024)


def test_relative_paths_start_at_the_file(load: Callable[[str], Settings], tmp_path: Path) -> None:
    people = tmp_path / "people.toml"
    people.touch(mode=0o600)
    made = load("state_dir = 'state'\n[directory]\nsource = 'file'\nfile = 'people.toml'\n")
    assert (made.state_dir, made.directory.file) == (tmp_path / "state", people)
    assert made.file == tmp_path / "config.toml"


def test_the_environment_changes_no_setting(
    load: Callable[[str], Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIR", "/elsewhere")
    monkeypatch.setenv("DATABASE", '{"url": "postgresql://elsewhere"}')
    made = load("state_dir = '/here'")
    assert (str(made.state_dir), made.database.url) == ("/here", "embedded")


@pytest.mark.parametrize("name", ["people.toml", "secret"])
def test_files_that_decide_may_not_lie_in_a_share(
    load: Callable[[str], Settings], tmp_path: Path, name: str
) -> None:
    inside = tmp_path / "notes" / name
    inside.parent.mkdir()
    inside.touch(mode=0o600)
    share = f'[[share]]\nname = "n"\npath = "{inside.parent}"\n[share.acl]\nsource = "posix"\n'
    uses = {
        "people.toml": f'[directory]\nsource = "file"\nfile = "{inside}"\n',
        "secret": f'[embedding]\napi_key_file = "{inside}"\n',
    }
    with pytest.raises(ConfigError, match="inside the share"):
        load(uses[name] + share)


def test_the_configuration_itself_may_not_lie_in_a_share(
    load: Callable[[str], Settings], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="inside the share"):
        load(f'state_dir = "/x"\n[[share]]\nname = "n"\npath = "{tmp_path}"\n[share.acl]\nsource = "posix"')


def test_text_that_is_not_utf8_is_said_so(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"# caf\xe9\n")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_settings(file)


def test_find_config_takes_the_first_of_its_places(
    tmp_path: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named, local, home = (
        tmp_path / "n.toml",
        tmp_path / "config.toml",
        clean_environment / ".config/notewarden",
    )
    home.mkdir(parents=True)
    for file in (named, local, home / "config.toml"):
        file.touch()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert find_config(named) == named
    assert find_config(None) == local
    monkeypatch.setenv("NOTEWARDEN_CONFIG", str(named))
    assert find_config(None) == named
    monkeypatch.delenv("NOTEWARDEN_CONFIG")
    local.unlink()
    assert find_config(None) == home / "config.toml"


def test_root_does_not_take_the_configuration_of_the_folder_it_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").touch()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(ConfigError, match="notewarden init"):
        find_config(None)


def test_a_named_configuration_that_is_missing_is_not_replaced_by_another(
    tmp_path: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = clean_environment / ".config/notewarden"
    home.mkdir(parents=True)
    (home / "config.toml").touch()
    monkeypatch.setenv("NOTEWARDEN_CONFIG", str(tmp_path / "gone.toml"))
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        find_config(None)


def test_parse_settings_leaves_the_base_folder_as_it_was(tmp_path: Path) -> None:
    first = parse_settings(tomllib.loads("state_dir = 'a'"), tmp_path / "one" / "c.toml")
    second = parse_settings(tomllib.loads("state_dir = 'a'"), tmp_path / "two" / "c.toml")
    assert (first.state_dir, second.state_dir) == (tmp_path / "one/a", tmp_path / "two/a")
