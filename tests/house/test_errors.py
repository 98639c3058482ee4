"""The error tree: the contract's exit codes, and one plain sentence each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notewarden import errors
from notewarden.errors import NoteError, NotewardenError


def family(cls: type[NotewardenError]) -> Iterator[type[NotewardenError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from family(child)


CODES = {
    "AskerUnknown": 5, "DirectoryUnreachable": 5,
    "UsageError": 2, "ConfigError": 2, "NotInNotes": 3, "ShareUnavailable": 4, "IndexTooOld": 4,
    "AskerNotAllowed": 5, "SyncIncomplete": 6, "DatabaseUnavailable": 7,
    "SchemaTooNew": 7, "AnswererFailed": 8, "ProviderFailed": 8, "EmbeddingFailed": 8, "LimitReached": 9,
    "Interrupted": 130, "NotewardenError": 1,
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_each_error_has_the_contracts_exit_code(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_the_docstring_is_the_message_until_another_is_given() -> None:
    assert str(errors.DatabaseUnavailable()) == "The database cannot be reached."
    assert str(errors.DatabaseUnavailable("The database is starting.")) == "The database is starting."


@pytest.mark.parametrize(
    "cls", [cls for cls in family(NotewardenError) if cls.__module__ == "notewarden.errors"]
)
def test_every_error_is_one_sentence(cls: type[NotewardenError]) -> None:
    message = str(cls())
    assert message.endswith(".")
    assert "\n" not in message


def test_a_notes_trouble_carries_its_reason_and_whether_waiting_helps() -> None:
    assert not errors.NoteUnreadable("Access denied.").permanent
    assert errors.NoteSkipped("Too large.").permanent
    assert errors.NoteUnreadable("Access denied.").reason == "Access denied."
    assert errors.NoteUnreadable("A case twin.", permanent=True).permanent
    assert issubclass(errors.NoteParked, NoteError)
