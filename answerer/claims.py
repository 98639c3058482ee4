"""Whether a sentence can rest on the lines it cites: its numbers stand there, and enough of its words."""

from __future__ import annotations

import re
import unicodedata

_NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f \u2009]\d{3}(?!\d))*(?:[.,:]\d+)*")
_GROUPS = re.compile(r"(?<=\d)[.,'’\u00a0\u202f \u2009](?=\d{3}(?!\d))")
_ORDINAL = re.compile(r"^\s*(?:[-*+]\s+)?\d{1,2}[.)]\s+", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_ANY = re.compile(r"\w")

_MONTHS = {
    name: str(number)
    for number, names in enumerate(
        (
            "january jan januar jänner",
            "february feb februar",
            "march mar märz",
            "april apr",
            "may mai",
            "june jun juni",
            "july jul juli",
            "august aug",
            "september sep sept",
            "october oct oktober okt",
            "november nov",
            "december dec dezember dez",
        ),
        1,
    )
    for name in names.split()
}
_WRITTEN = {
    "zero null": 0, "one eins ein eine once": 1, "two zwei twice": 2, "three drei": 3, "four vier": 4,
    "five fünf": 5, "six sechs": 6, "seven sieben": 7, "eight acht": 8, "nine neun": 9, "ten zehn": 10,
    "eleven elf": 11, "twelve zwölf dozen noon": 12, "thirteen dreizehn": 13, "fourteen vierzehn": 14,
    "fifteen fünfzehn": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
    "twenty zwanzig": 20,
    "thirty dreißig dreissig": 30, "forty vierzig": 40, "fifty fünfzig": 50, "sixty sechzig": 60,
    "seventy siebzig": 70, "eighty achtzig": 80, "ninety neunzig": 90, "hundred hundert": 100,
    "thousand tausend": 1000,
}  # fmt: skip
_NUMERALS = {name: str(value) for names, value in _WRITTEN.items() for name in names.split()} | _MONTHS
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "but",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "from",
        "by",
        "with",
        "without",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "as",
        "not",
        "no",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "will",
        "would",
        "can",
        "could",
        "may",
        "might",
        "must",
        "should",
        "shall",
        "they",
        "them",
        "their",
        "there",
        "which",
        "who",
        "whom",
        "what",
        "when",
        "where",
        "how",
        "if",
        "then",
        "than",
        "so",
        "you",
        "your",
        "we",
        "our",
        "us",
        "he",
        "she",
        "his",
        "her",
        "i",
        "my",
        "me",
        "also",
        "only",
        "more",
        "most",
        "all",
        "any",
        "each",
        "every",
        "after",
        "before",
        "about",
        "into",
        "per",
        "up",
        "out",
        "over",
        "under",
        "between",
        "during",
        "until",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "einer",
        "eines",
        "und",
        "oder",
        "aber",
        "von",
        "zu",
        "im",
        "in",
        "am",
        "an",
        "auf",
        "für",
        "aus",
        "bei",
        "mit",
        "ohne",
        "ist",
        "sind",
        "war",
        "waren",
        "es",
        "sie",
        "er",
        "wir",
        "ihr",
        "nicht",
        "kein",
        "keine",
        "als",
        "wie",
        "wenn",
        "dass",
        "so",
        "auch",
        "nur",
        "nach",
        "vor",
        "über",
        "unter",
        "bis",
        "pro",
        "den",
        "dem",
        "des",
        "wird",
        "werden",
    ]
)


def numbers(text: str) -> set[str]:
    """Return the numbers of a text in one form: no thousands separators, no leading zeros, one part each.

    "1,500" and "1.500" are 1500, "2026-02-01" is {2026, 2, 1}, "3.5" is {3, 5}: a number that is written in
    another way than in the note still agrees, one that is not there does not.
    """
    plain = unicodedata.normalize("NFKC", _ORDINAL.sub(" ", text))
    found: set[str] = set()
    for match in _NUMBER.finditer(plain):
        joined = _GROUPS.sub("", match.group())
        found |= {str(int(part)) for part in re.findall(r"\d+", joined)}
    return found


def spelled(text: str) -> set[str]:
    """Return the numbers that a text spells out in words: months and numerals, English and German."""
    return {_NUMERALS[word] for word in _WORD.findall(text.casefold()) if word in _NUMERALS}


def parts(text: str) -> set[str]:
    """Return every run of digits of a text: an id such as X3920 holds 3920."""
    return {str(int(run)) for run in re.findall(r"\d+", unicodedata.normalize("NFKC", text))}


def content_words(text: str) -> set[str]:
    """Return the words that say something, cut to their first six letters: enough to meet inflections."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return {word[:6] for word in words if word not in _COMMON and word not in _NUMERALS}


def invents_number(sentence: str, evidence: str) -> bool:
    """Whether the sentence holds a number that stands nowhere in the evidence."""
    return not numbers(sentence) <= numbers(evidence) | spelled(evidence) | parts(evidence)


def is_held(sentence: str, evidence: str, least: float) -> bool:
    """Whether the evidence holds all numbers and at least this part of the content words of the sentence."""
    if invents_number(sentence, evidence):
        return False
    words = content_words(sentence)
    return not words or len(words & content_words(evidence)) >= least * len(words)


def says_something(sentence: str) -> bool:
    """Whether there is anything in it that could need a source."""
    return _ANY.search(sentence) is not None
