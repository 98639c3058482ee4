"""Which encoding a note is in, decided from its bytes alone."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from charset_normalizer import from_bytes

from notewarden.errors import NoteSkipped

_BOMS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARIES = (  # a small one of these may be all but text; others are known by their control bytes
    (re.compile(rb"%PDF-\d"), "a PDF document"),
    (re.compile(rb"\x89PNG\r\n|\xff\xd8\xff"), "an image"),
    (re.compile(rb"PK\x03\x04|\x1f\x8b\x08|\xd0\xcf\x11\xe0"), "an archive or office document"),
    (re.compile(rb"\x00\x05\x16[\x00\x07]"), "a Mac's resource file"),
)
# Tab, line feed, carriage return, form feed, vertical tab, backspace and ESC occur in pasted terminal output.
_CONTROL = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL_BYTE = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_LETTER_BYTE = re.compile(rb"[A-Za-z\x80-\xff]")
_BAD_BYTES = re.compile("[\udc80-\udcff]+")
_BEYOND_ASCII = re.compile("[\x80-\ud7ff\ue000-\U0010ffff]")
_STATELESS = re.compile(r"cp\d+|iso8859_\d+|koi8_[rtu]|mac_\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|johab")
_NEVER_IN_UTF16 = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f\ud800-\uf8ff\ufff0-\uffff]")
_ASCII = re.compile("[\t\n\r -~]")
_SAMPLE = 1 << 16
_FEW_CONTROLS = 8
_ENOUGH_TO_DETECT = 16  # high bytes; on less the detector only guesses


@dataclass(frozen=True, slots=True)
class Guess:
    """Text before anything in it is replaced, with the codec that turns it back into the same bytes.

    `width` is the number of bytes of every character where that is fixed, else 0.
    """

    text: str = field(repr=False)
    encoding: str
    bom: int = 0
    width: int = 0
    errors: str = "surrogateescape"

    def width_of(self, piece: str) -> int:
        """Return how many bytes `piece`, a piece of `text`, takes in the note."""
        if self.width:
            return self.width * len(piece)
        codec = "utf-8" if self.encoding == "utf-8-sig" else self.encoding
        return len(piece.encode(codec, self.errors))


def guess(raw: bytes) -> Guess:
    """Return the most likely reading of `raw`. Raises NoteSkipped for what is no text."""
    marked = _by_bom(raw)
    if marked is not None:
        return marked
    for pattern, kind in _BINARIES:
        if pattern.match(raw):
            raise NoteSkipped(f"binary: the file is {kind}, not text")
    return _utf8(raw) or _unmarked_utf16(raw) or _damaged_utf8(raw) or _single_byte(raw)


def _by_bom(raw: bytes) -> Guess | None:
    for mark, encoding in _BOMS:
        if not raw.startswith(mark):
            continue
        body = raw[len(mark) :]
        if encoding.startswith("utf-32") and (len(body) % 4 or not _strict(body, encoding)):
            continue  # a UTF-16 note whose first character is NUL
        return _without_further_marks(_read(body, encoding), len(mark))
    return None


def _read(body: bytes, encoding: str) -> Guess:
    if encoding.startswith("utf-8"):
        return Guess(body.decode("utf-8", "surrogateescape"), encoding)
    if encoding.startswith("utf-16"):
        return _utf16(body, encoding)
    return Guess(body.decode(encoding, "surrogatepass"), encoding, width=4)


def _without_further_marks(found: Guess, bom: int) -> Guess:
    """Some editors write the mark twice; a second one would hide the first heading as well as the first."""
    text = found.text.lstrip("\ufeff")
    bom += found.width_of(found.text[: len(found.text) - len(text)])
    return Guess(text, found.encoding, bom, found.width, found.errors)


def _strict(body: bytes, encoding: str) -> bool:
    try:
        body.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _utf16(body: bytes, encoding: str) -> Guess:
    """An odd last byte, as a cut-off copy leaves it, becomes one more replacement character."""
    even = len(body) & ~1
    text = body[:even].decode(encoding, "surrogatepass")
    return Guess(text + "\ufffd" * (len(body) - even), encoding, errors="surrogatepass")


def _utf8(raw: bytes) -> Guess | None:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    controls = len(_CONTROL.findall(text))
    if "\x00" in text and _nul_side(raw, share=0.7) is not None:
        return None
    if controls > _FEW_CONTROLS and controls * 10 > len(text):
        return None
    return Guess(text, "utf-8")


def _nul_side(raw: bytes, share: float) -> str | None:
    """Return the UTF-16 codec whose high bytes are the NULs of `raw`, if at least `share` of them are."""
    sample = raw[: _SAMPLE & ~1]
    units = len(sample) // 2
    first, second = sample[0::2].count(0), sample[1::2].count(0)
    for encoding, high, low in (("utf-16-le", second, first), ("utf-16-be", first, second)):
        if high and high >= share * units and low * 20 <= high:
            return encoding
    return None


def _has_many_controls(raw: bytes) -> bool:
    controls = len(_CONTROL_BYTE.findall(raw))
    return controls > 1 and controls * 50 > len(raw)


def _plain(found: Guess) -> int:
    """Return how many ASCII characters a reading has: with its bytes swapped there are next to none."""
    return len(_ASCII.findall(found.text[:_SAMPLE]))


def _unmarked_utf16(raw: bytes) -> Guess | None:
    """UTF-16 without a mark: some plain characters come out, and few controls.

    Any two letters make some Chinese character, so this is asked only of bytes that read badly one by one.
    """
    if not _has_many_controls(raw):
        return None
    found = max((_utf16(raw, encoding) for encoding in ("utf-16-le", "utf-16-be")), key=_plain)
    sample = found.text[:_SAMPLE]
    if not _plain(found):
        return None
    odd = len(_NEVER_IN_UTF16.findall(sample))
    return found if odd * 50 <= len(sample) + 50 else None


def _damaged_utf8(raw: bytes) -> Guess | None:
    """UTF-8 with a few bad bytes: in no other encoding do well-formed sequences outnumber the broken ones."""
    if _has_many_controls(raw):
        raise NoteSkipped("binary: the file holds bytes that no text has")
    text = raw.decode("utf-8", "surrogateescape")
    sound = len(_BEYOND_ASCII.findall(text))
    return Guess(text, "utf-8") if sound and sound >= len(_BAD_BYTES.findall(text)) else None


def _single_byte(raw: bytes) -> Guess:
    """Western European text has few letters beyond ASCII; where most are, ask the detector."""
    high = len(_HIGH_BYTE.findall(raw))
    if high >= _ENOUGH_TO_DETECT and high * 10 > 4 * len(_LETTER_BYTE.findall(raw)):
        other = _detected(raw)
        if other is not None:
            return other
    # Bytes that cp1252 leaves undefined (81, 8D, 8F, 90, 9D) decode to lone surrogates, replaced later.
    return Guess(raw.decode("cp1252", "surrogateescape"), "cp1252", width=1)


def _detected(raw: bytes) -> Guess | None:
    best = from_bytes(raw[:_SAMPLE]).best()
    if best is None or not _STATELESS.fullmatch(best.encoding):
        return None
    try:
        text = raw.decode(best.encoding)
        exact = text.encode(best.encoding) == raw  # else byte ranges could not be told
    except UnicodeError:
        return None
    return Guess(text, best.encoding, errors="strict") if exact else None
