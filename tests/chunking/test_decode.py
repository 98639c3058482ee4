"""Which encoding a note is read in, and which bytes its characters stand for."""

from __future__ import annotations

import codecs
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.decode import decode
from notewarden.errors import NoteSkipped

GERMAN = "Die Straße „Am Bäcker“ führt nach Köln – 5 € Gebühr.\n"
RUSSIAN = "Привет, это заметка о котле на старой мельнице. Он работает каждый понедельник.\n"
CHINESE = "锅炉每周一检查 一次，由 两兄弟 负责。\n今天 天气 很好\n"

CASES: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "utf-8", ""),
    "ASCII": (b"plain\n", "utf-8", "plain\n"),
    "UTF-8": (GERMAN.encode(), "utf-8", GERMAN),
    "UTF-8 with BOM": (codecs.BOM_UTF8 + GERMAN.encode(), "utf-8-sig", GERMAN),
    "BOM written twice": (codecs.BOM_UTF8 * 2 + b"# x", "utf-8-sig", "# x"),
    "BOM alone": (codecs.BOM_UTF8, "utf-8-sig", ""),
    "UTF-16 LE with BOM": (codecs.BOM_UTF16_LE + GERMAN.encode("utf-16-le"), "utf-16-le", GERMAN),
    "UTF-16 BE with BOM": (codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"), "utf-16-be", GERMAN),
    "UTF-16 LE": (GERMAN.encode("utf-16-le"), "utf-16-le", GERMAN),
    "UTF-16 BE": (GERMAN.encode("utf-16-be"), "utf-16-be", GERMAN),
    "UTF-16 of two letters": ("Hi".encode("utf-16-le"), "utf-16-le", "Hi"),
    "UTF-16 in Russian": (RUSSIAN.encode("utf-16-le"), "utf-16-le", RUSSIAN),
    "UTF-16 in Chinese": (CHINESE.encode("utf-16-be"), "utf-16-be", CHINESE),
    "UTF-16 with an emoji": ("a 👋 b".encode("utf-16"), "utf-16-le", "a 👋 b"),
    "UTF-16 with a lone surrogate": (
        codecs.BOM_UTF16_LE + "a\ud800b".encode("utf-16-le", "surrogatepass"), "utf-16-le", "a\ufffdb",
    ),
    "UTF-16 cut off": (codecs.BOM_UTF16_LE + "ab".encode("utf-16-le")[:-1], "utf-16-le", "a\ufffd"),
    "UTF-16 with NUL first": (codecs.BOM_UTF16_LE + b"\0\0a\0", "utf-16-le", "\ufffda"),
    "UTF-32 LE": (codecs.BOM_UTF32_LE + GERMAN.encode("utf-32-le"), "utf-32-le", GERMAN),
    "UTF-32 BE": (codecs.BOM_UTF32_BE + GERMAN.encode("utf-32-be"), "utf-32-be", GERMAN),
    "cp1252": (GERMAN.encode("cp1252"), "cp1252", GERMAN),
    "cp1252, a word": ("Größe".encode("cp1252"), "cp1252", "Größe"),
    "cp1252 with a byte it leaves undefined": (b"caf\xe9 \x81 \x9d", "cp1252", "café \ufffd \ufffd"),
    "cp1252 with a NUL": (b"Stra\xdfe \0 und Weg", "cp1252", "Straße \ufffd und Weg"),
    "cp1251 by detection": (RUSSIAN.encode("cp1251"), "cp1251", RUSSIAN),
    "damaged UTF-8": ("Grüße aus Köln".encode() + b"\xff", "utf-8", "Grüße aus Köln\ufffd"),
    "UTF-8 cut off": (GERMAN.encode() + b"\xe2\x82", "utf-8", GERMAN + "\ufffd\ufffd"),
    "surrogates in UTF-8": ("äöü ".encode() + b"\xed\xa0\x80", "utf-8", "äöü \ufffd\ufffd\ufffd"),
    "NUL in text": (b"one\0two three", "utf-8", "one\ufffdtwo three"),
    "a log with terminal colours": (b"\x1b[31mred\x1b[0m\n" * 20, "utf-8", "\x1b[31mred\x1b[0m\n" * 20),
}  # fmt: skip

BINARIES = {
    "PDF": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
    "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "zip": b"PK\x03\x04\x14\0\0\0\x08\0",
    "gzip": b"\x1f\x8b\x08\0abc",
    "a Mac's twin": b"\0\x05\x16\x07\0\x02\0\0Mac OS X        " + bytes(64),
    "only NULs": bytes(4096),
    "every byte": bytes(range(256)) * 4,
}


@pytest.mark.parametrize("name", CASES)
def test_a_note_is_read_in_its_encoding(name: str) -> None:
    raw, encoding, text = CASES[name]
    decoded = decode(raw)
    assert (decoded.encoding, decoded.text, decoded.size) == (encoding, text, len(raw))


@pytest.mark.parametrize("name", CASES)
def test_every_character_knows_its_bytes(name: str) -> None:
    raw, encoding, text = CASES[name]
    decoded = decode(raw)
    offsets = decoded.byte_offsets(range(len(text) + 1))
    assert offsets[-1] == len(raw)
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    for char, start, end in zip(text, offsets, offsets[1:], strict=False):
        assert start < end
        if char != "\ufffd":
            assert raw[start:end].decode(codec) == char


@pytest.mark.parametrize("name", BINARIES)
def test_a_binary_is_skipped_and_says_so(name: str) -> None:
    with pytest.raises(NoteSkipped, match="binary") as caught:
        decode(BINARIES[name])
    assert caught.value.permanent


@given(st.binary(max_size=200))
def test_any_bytes_are_text_that_can_be_stored_or_a_binary(raw: bytes) -> None:
    try:
        decoded = decode(raw)
    except NoteSkipped:
        return
    decoded.text.encode("utf-8")
    assert "\0" not in decoded.text
    offsets = decoded.byte_offsets(range(len(decoded.text) + 1))
    assert offsets[-1] == len(raw)
    assert offsets[0] == (decoded.bom if decoded.text else len(raw))
    assert all(a < b for a, b in pairwise(offsets))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), min_size=1))
def test_marked_text_comes_back_as_it_was(text: str) -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert decode(text.encode(encoding)).text == text
