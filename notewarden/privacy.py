"""What must not leave this machine in clear: addresses, numbers of people, secrets, found in plain text.

Both sides need it: what is embedded by a provider is made of the same text as what is asked there. Finding is
tuned to miss nothing rather than to spare numbers, because a placeholder costs an answer next to nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

Kind = Literal["E-MAIL", "PHONE", "CARD", "IBAN", "SSN", "IP", "SECRET"]
"""SSN stands for every number that a state gives a person."""


@dataclass(frozen=True)
class Finding:
    """Something private at the half-open character offsets [start, end)."""

    start: int
    end: int
    kind: Kind


def find_private(text: str) -> list[Finding]:
    """Return what is private in `text`, in order and without overlaps; what is found first in kind wins."""
    taken: list[Finding] = []
    free = text
    for kind, find in _FINDERS:
        found = [Finding(start, end, kind) for start, end in _without_overlaps([*find(free)])]
        taken += found
        for one in found:  # what is taken is out of the way of the kinds that follow
            free = free[: one.start] + "\0" * (one.end - one.start) + free[one.end :]
    return sorted(taken, key=lambda one: one.start)


def replace_private(text: str, name: Callable[[Kind, str], str]) -> tuple[str, Counter[Kind]]:
    """Return `text` with `name(kind, value)` in the place of every finding, and how many of each kind."""
    parts: list[str] = []
    counts: Counter[Kind] = Counter()
    last = 0
    for one in find_private(text):
        parts += (text[last : one.start], name(one.kind, text[one.start : one.end]))
        counts[one.kind] += 1
        last = one.end
    return "".join((*parts, text[last:])), counts


def redact_for_embedding(text: str) -> str:
    """Return `text` with one constant per kind, such as [E-MAIL].

    Nothing is ever restored there, and equal texts must give equal strings, or no vector could be reused.
    """
    return replace_private(text, lambda kind, _: f"[{kind}]")[0]


# Secrets -------------------------------------------------------------------------------------------

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,30}-----|\Z)", re.S
)
_TOKEN = re.compile(
    r"(?<![\w-])(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|hf_\w{20,}|npm_\w{20,}"
    r"|pypi-[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|[rsp]k_(?:live|test)_\w{16,}|dop_v1_\w{20,}|pa-[\w-]{30,}"
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)"
)
_IN_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,200}:([^\s/@]{1,200})@", re.I)
_BEARER = re.compile(r"\b(?:bearer|basic)\s+([A-Za-z0-9._~+/-]{12,}=*)", re.I)
_NAMED = re.compile(
    r"(?:\b|_)(?P<name>pass(?:word|wort|wd|phrase|code)|pwd|kennwort|kennung|mot de passe|contraseña"
    r"|geheimnis"
    r"|(?:client|app|shared|webhook)?[-_ ]?secret"
    r"|(?:api|access|auth|bearer|refresh|secret|private|account|license|signing|encryption)"
    r"[-_ ]?(?:key|token)|token|credentials?|pin|puk|psk|wpa2?[- ]key|pw)s?\b[\"'`*]{0,3}"
    r"(?:\s+(?:for|of|für|von|de)\s+[\w.-]{1,40}(?:\s+[\w.-]{1,40})?)?"
    r"\s{0,3}(?P<sign>:=|=>|[:=]|\||\bis\b|\bwas\b|\bist\b|\blautet\b|\bes\b|\best\b)\s{0,3}"
    r"(?P<open>[\"'`*«“„<]{0,3})(?P<value>[^\s\"'`«»“”„|]{3,200})",
    re.I,
)
_NO_SECRET = frozenset(
    """
        required optional none null nil true false yes no the a an your you my our see ask stored kept
        not never in on at with by to from and or changed unchanged expired empty missing unknown
        string str int bytes text file env vault keepass rotated needed invalid wrong correct secret
        token password default is was set unset required, siehe im der die das ein eine nicht nie bei
        beim wird liegt steht abgelaufen falsch self.password generated hidden redacted removed
        somewhere only shared valid too tbd n/a here there renewed reset what part always usually also
        now out sent printed written asked
    """.split()  # noqa: SIM905 - read like this it can be read
)


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    found = [match.span() for match in (*_PEM.finditer(text), *_TOKEN.finditer(text))]
    found += [match.span(1) for match in (*_IN_URL.finditer(text), *_BEARER.finditer(text))]
    found += [span for match in _NAMED.finditer(text) if (span := _named(match)) is not None]
    return _without_overlaps(found)


def _named(match: re.Match[str]) -> tuple[int, int] | None:
    value = match["value"].rstrip(".,;:!?)]}>*")
    bare = value.casefold().strip("*_<[({")
    if len(value) < 3 or bare in _NO_SECRET or value[0] in "$<{[(%" or not re.search(r"\w", value):
        return None
    words = match["sign"][0].isalpha()
    odd = re.search(r"[\d!#$%&*+=?@^~_]", value) or re.search(r"[a-zß-ÿ][A-Z]", value)
    if words and not odd and not match["open"]:
        return None  # "the password is printed …" is prose
    if not odd and match["name"].casefold() in ("pin", "puk", "token", "kennung", "pw"):
        return None
    return match.start("value"), match.start("value") + len(value)


def _without_overlaps(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last = -1
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= last:
            yield start, end
            last = end


# Addresses -----------------------------------------------------------------------------------------

_MAIL = re.compile(
    r"(?<![\w.+@-])[\w.+%'&-]{1,64}\s?(?:@|\s?[\[({]\s?(?:at|ät)\s?[\])}]\s?)\s?"
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?(?:\.|\s?[\[({]\s?(?:dot|punkt)\s?[\])}]\s?)){1,8}[^\W\d_]{2,24}(?![\w@])",
    re.I,
)
_FILES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".js", ".css")
_SPACED_AT = re.compile(r"\s@|@\s")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-f:.]*:[0-9a-f:.]*:)[0-9a-f:]{2,39}(?:(?:\d{1,3}\.){3}\d{1,3})?(?![\w:]|\.\d)", re.I
)
_VERSION = re.compile(r"(?:\bv|version|release|rev\.?|build|ver\.?|firmware)\s*$", re.I)


def _mails(text: str) -> Iterator[tuple[int, int]]:
    for match in _MAIL.finditer(text):
        if not _SPACED_AT.search(match.group()) and not match.group().casefold().endswith(_FILES):
            yield match.span()


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    for match in _IPV4.finditer(text):
        if not _VERSION.search(text[max(0, match.start() - 12) : match.start()]) and _is_address(
            match.group()
        ):
            yield match.span()
    for match in _IPV6.finditer(text):
        groups = [part for part in match.group().split(":") if part]
        if (len(groups) > 2 or re.search(r"\d", match.group())) and _is_address(match.group()):
            yield match.span()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


# Numbers that carry a check ------------------------------------------------------------------------

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0-]?[A-Z0-9]{1,4}){2,9}(?![A-Za-z0-9])", re.I)
_CARD = re.compile(r"(?<![\w.-])[2-6]\d{3}(?:[ \u00a0.-]?\d){9,15}(?![\w]|[.,]\d)")
_CODES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![\w-])(?!000|666|9)\d{3}[- ](?!00)\d{2}[- ](?!0000)\d{4}(?![\w-])",  # United States
        r"(?<!\w)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D](?!\w)",  # United Kingdom
        r"(?<!\w)\d{2} ?[0-3]\d[01]\d\d{2} ?[A-Z] ?\d{2} ?\d(?!\w)",  # Germany, pension insurance
        r"(?<!\w)[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z](?!\w)",  # Italy
        r"(?<![\w.])756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}(?![\w])",  # Switzerland
        r"(?<![\w-])(?:\d{2})?\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])[-+]\d{4}(?![\w-])",  # Sweden, Denmark
        r"(?<![\w-])\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y](?![\w-])",  # Finland
        r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])",  # Brazil
        r"(?<![\w.])\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}(?![\w])",  # Belgium
    )
)
_FRENCH = re.compile(
    r"(?<!\w)[12][ .]?\d{2}[ .]?\d{2}[ .]?(?:\d{2}|2[AB])[ .]?\d{3}[ .]?\d{3}[ .]?\d{2}(?!\w)"
)
_SPANISH = re.compile(r"(?<!\w)[XYZ\d]\d{7}[- ]?[A-Z](?!\w)")
_SPANISH_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CALLED = re.compile(
    r"\b(?:ssn|social[- ]security(?: (?:no|number|nr))?|sozialversicherungs?(?:nummer|nr)|"
    r"sv[- ]?(?:nummer|nr)|steuer[- ]?id(?:nr)?|steuer(?:identifikations)?nummer|tax[- ]?id(?: number)?|"
    r"national insurance(?: number)?|nino|bsn|pesel|ahv(?:[- ]?n(?:umme)?r)?|personnummer|"
    r"numéro de sécurité sociale|aadhaar|sin|passport(?: (?:no|number))?|reisepass(?:nummer)?)\b"
    r"[\s.:#=]{0,4}(?:is|ist|no\.?|nr\.?|number)?[\s:#]{0,3}"
    r"((?=[A-Z\d /.-]*\d[A-Z\d /.-]*\d)[A-Z]{0,2}\d[\dA-Z /.-]{4,18}[\dA-Z])(?!\w)",
    re.I,
)


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for match in _IBAN.finditer(text):
        end = _longest_iban(match.group())
        if end:
            yield match.start(), match.start() + end


def _longest_iban(text: str) -> int:
    """Return how much of `text` is an IBAN (ISO 13616), 0 for none: words may follow it unmarked."""
    ends = [match.end() for match in re.finditer(r"[A-Z0-9](?![A-Z0-9])|[A-Z0-9]$", text, re.I)]
    for end in reversed(ends):
        bare = re.sub(r"[ \u00a0-]", "", text[:end]).upper()
        if 15 <= len(bare) <= 34 and int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1:
            return end
    return 0


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for match in _CARD.finditer(text):
        digits = [int(char) for char in match.group() if char.isdigit()]
        if 13 <= len(digits) <= 19 and _luhn(digits):
            yield match.span()


def _luhn(digits: list[int]) -> bool:
    """ISO/IEC 7812-1, annex B."""
    doubled = [d * 2 - 9 * (d > 4) if at % 2 else d for at, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def _state_numbers(text: str) -> Iterator[tuple[int, int]]:
    found = [match.span() for code in _CODES for match in code.finditer(text)]
    found += [match.span(1) for match in _CALLED.finditer(text)]
    found += [match.span() for match in _FRENCH.finditer(text) if _is_french(match.group())]
    found += [match.span() for match in _SPANISH.finditer(text) if _is_spanish(match.group())]
    return _without_overlaps(found)


def _is_french(text: str) -> bool:
    bare = re.sub(r"[ .]", "", text).replace("2A", "19").replace("2B", "18")
    return bare.isdigit() and 97 - int(bare[:13]) % 97 == int(bare[13:])


def _is_spanish(text: str) -> bool:
    bare = re.sub(r"[- ]", "", text)
    digits = bare[:-1].translate(str.maketrans("XYZ", "012"))
    return digits.isdigit() and _SPANISH_LETTERS[int(digits) % 23] == bare[-1]


# Telephone numbers ---------------------------------------------------------------------------------

_GAP = r"[ \u00a0\u2009\u202f./()–-]"
_NUMBERS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\w+])\+{_GAP}?\d(?:{_GAP}{{0,3}}\d){{5,16}}(?!\w)",
        rf"(?<![\w.,-])00[1-9]\d?(?:{_GAP}{{0,3}}\d){{6,14}}(?![\w])",
        rf"(?<![\w.,/:-])\(?0[1-9]\d{{0,4}}\)?(?:{_GAP}{{0,3}}\d){{4,11}}(?![\w]|[.,:]\d)",
        r"(?<![\w.,/-])(?:1[ .-])?\(?[2-9]\d{2}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?![\w-])",
        r"(?<![\w.,:/-])[1-9]\d{2}-\d{4}(?![\w-]|[.,]\d)",
        r"(?<![\w.,:/#=-])\d{7,15}(?![\w]|[.,:/-]\d)",
        r"(?<![\w.,:/-])[1-9]\d{1,3}(?: \d{2}){3,4}(?![\w]| ?\d|[.,]\d)",
    )
)
_BY_NAME = re.compile(
    r"\b(?P<name>tel(?:ephone|efon)?|t[eé]l[eé]phone|phone|call|mobile|mobil|handy|cell|fax|ring|dial|durchwahl|extension|ext|"
    r"whatsapp|hotline|pager|rufnummer|nebenstelle|nst|dw|anrufen|sms|number is|nummer ist|wählen sie)\b\.?"
    r"(?:[ \t]*(?:no|nr|number|nummer|is|ist|us at|me at|at|on|unter|me|him|her|them|sie|auf|under)\b\.?)"
    r"{0,3}[ \t:#=*|(]{0,4}"
    rf"(?P<number>\d(?:{_GAP}{{0,3}}\d){{2,14}})(?![\w]|[.,]\d)",
    re.I,
)
_DATE = re.compile(r"(?:19|20)\d{2}[./-]?(?:0[1-9]|1[0-2])[./-]?(?:0[1-9]|[12]\d|3[01])")
_DAY_FIRST = re.compile(r"(?:0?[1-9]|[12]\d|3[01])[./-](?:0?[1-9]|1[0-2])[./-](?:19|20)?\d{2}")
_YEARS = re.compile(r"(?:19|20)\d{2}(?:[ –-]{1,3}(?:19|20)?\d{2})?")


def _phones(text: str) -> Iterator[tuple[int, int]]:
    found = [match.span() for number in _NUMBERS for match in number.finditer(text)]
    found += [match.span("number") for match in _BY_NAME.finditer(text) if not _just_a_year(match)]
    kept = [(start, end) for start, end in found if not _is_date(text[start:end])]
    return _without_overlaps([_closed(text, span) for span in kept])


def _just_a_year(match: re.Match[str]) -> bool:
    short = match["name"].casefold() in ("ext", "extension", "durchwahl", "nebenstelle", "nst", "dw")
    return not short and _YEARS.fullmatch(match["number"]) is not None


def _is_date(text: str) -> bool:
    plain = text.strip()
    if _DAY_FIRST.match(plain) and sum(char.isdigit() for char in plain) <= 8:
        return True
    found = _DATE.match(plain)
    if found is None:
        return False
    digits = re.sub(r"\D", "", found.group())
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    except ValueError:
        return False
    return sum(char.isdigit() for char in plain) in (8, 10, 12, 14)  # with a time of day behind


def _closed(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """A bracket that was opened before the number belongs to it only with its other half."""
    start, end = span
    if text[start] == "(" and ")" not in text[start:end]:
        start += 1
    return start, end


_FINDERS: tuple[tuple[Kind, Callable[[str], Iterator[tuple[int, int]]]], ...] = (
    ("SECRET", _secrets),
    ("E-MAIL", _mails),
    ("IBAN", _ibans),
    ("IP", _addresses),
    ("CARD", _cards),
    ("SSN", _state_numbers),
    ("PHONE", _phones),
)
