"""Where secrets come from, in which order, and that they are in no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from notewarden.errors import ConfigError
from notewarden.secret_files import read_secret


def secret_file(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    file.chmod(0o600)
    return file


def test_a_file_goes_before_a_path_variable_before_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_secret(None, "VOYAGE_API_KEY") is None
    monkeypatch.setenv("VOYAGE_API_KEY", "from-variable")
    assert read_secret(None, "VOYAGE_API_KEY") == "from-variable"
    monkeypatch.setenv("VOYAGE_API_KEY_PATH", str(secret_file(tmp_path, "credential", b"from-path\n")))
    assert read_secret(None, "VOYAGE_API_KEY") == "from-path"
    assert read_secret(secret_file(tmp_path, "key", b" from-file\n"), "VOYAGE_API_KEY") == "from-file"


@pytest.mark.parametrize("content", [b"", b" \n", b"hush\xff"])
def test_a_file_without_a_secret_is_no_secret(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError) as fault:
        read_secret(secret_file(tmp_path, "key", content), "VOYAGE_API_KEY")
    assert "hush" not in str(fault.value)


def test_a_file_that_others_may_change_is_refused(tmp_path: Path) -> None:
    file = secret_file(tmp_path, "key", b"hush")
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="others may write"):
        read_secret(file, "VOYAGE_API_KEY")


def test_a_missing_file_is_not_replaced_by_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", "hush")
    with pytest.raises(ConfigError, match="gone"):
        read_secret(tmp_path / "gone", "VOYAGE_API_KEY")


def test_systemds_copy_of_a_secret_goes_before_the_file_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service cannot open the file that the configuration names; root's own commands can."""
    named = secret_file(tmp_path, "nas-password", b"from-the-file")
    assert read_secret(named, "NOTHING") == "from-the-file"
    folder = tmp_path / "credentials"
    folder.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    assert read_secret(named, "NOTHING") == "from-the-file", "this service was not given it"
    secret_file(folder, "secret_nas-password", b"from-systemd")
    assert read_secret(named, "NOTHING") == "from-systemd"
    (folder / "secret_nas-password").chmod(0o666)
    with pytest.raises(ConfigError):
        read_secret(named, "NOTHING")
