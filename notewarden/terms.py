"""Text to terms, for the keyword leg: the indexer and the answerer must cut words alike.

A term is a stem (`~renew`), or an exact form kept whole (`=nas01.example.com`, `=e-4021`): words with
digits, dots, dashes or slashes inside, which operators search for as they stand.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources
from threading import local

import Stemmer

TERMS_VERSION = "1"

LANGUAGES = {"en": "english", "de": "german", "fr": "french", "es": "spanish"}

# Words so common that they carry no meaning; enough to tell the languages apart.
_STOP = {
    language: frozenset(
        (resources.files("notewarden") / "data" / f"stop-words-{language}.txt").read_text("utf-8").split()
    )
    for language in LANGUAGES
}


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_RUN = re.compile(r"[^\s\"'`()\[\]{}<>|,;!?*“”„‘’«»]+")
_EDGES = ".:-_/\\#=&+~^"
_MAX_TERM = 64
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_thread = local()


def detect_language(text: str) -> str:
    """Return "en", "de", "fr" or "es": whose common words the text holds most; English when undecided."""
    counts = Counter(word for word in _words(text[:20_000]))
    scores = {lang: sum(counts[word] for word in stop) for lang, stop in _STOP.items()}
    best = max(scores, key=lambda lang: scores[lang])
    return best if scores[best] > scores["en"] else "en"


def known_language(name: str | None) -> str | None:
    """Return the language of ours that `name` means ("de", "de-AT", "German"), None for any other."""
    said = (name or "").casefold().strip()
    short = {full: code for code, full in LANGUAGES.items()}.get(said, re.split(r"[-_.]", said)[0])
    return short if short in LANGUAGES else None


def count_terms(text: str, language: str) -> Counter[str]:
    """Return how often each term stands in `text`: stems by `language`, exact forms beside them.

    A language that is none of ours counts as English: notes name it, and nobody checks what they say.
    """
    language = language if language in LANGUAGES else "en"
    terms: Counter[str] = Counter()
    for word in _words(text):
        if word not in _STOP[language]:
            terms[_stem(word, language)] += 1
    terms.update(exact_forms(text))
    return terms


def query_terms(text: str) -> list[str]:
    """Return the distinct terms a question asks for, in order of appearance.

    A note may be in another language than the question, so each word gives its stem in the question's
    language and, where it differs, its English one.
    """
    language = detect_language(text)
    found: dict[str, None] = {}
    for word in _words(text):
        if word in _STOP[language]:
            continue
        for lang in dict.fromkeys((language, "en")):
            found.setdefault(_stem(word, lang))
    for form in exact_forms(text):
        found.setdefault(form)
    return list(found)


def query_words(text: str) -> list[tuple[str, ...]]:
    """Return the question's distinct words, each as the terms under which a note may hold it.

    A note holds the word when it holds any of them; together they are exactly `query_terms`.
    """
    language = detect_language(text)
    languages = tuple(dict.fromkeys((language, "en")))
    words = [word for word in _words(text) if word not in _STOP[language]]
    stems = (tuple(dict.fromkeys(_stem(word, lang) for lang in languages)) for word in words)
    return list(dict.fromkeys([*stems, *((form,) for form in exact_forms(text))]))


def exact_forms(text: str) -> Iterator[str]:
    """Yield what must be found as it stands: codes, versions, hosts, paths, flags."""
    for match in _RUN.finditer(_folded(text)):
        if match.group().isalpha():
            continue  # a plain word, as nearly all are
        run = match.group().rstrip(_EDGES).lstrip(_EDGES.replace("-", "").replace("/", "").replace("\\", ""))
        if 2 <= len(run) <= _MAX_TERM and _compound(run):
            yield "=" + run


def _compound(run: str) -> bool:
    inside = any(not char.isalnum() for char in run)
    return (inside and any(char.isalnum() for char in run)) or (
        any(char.isdigit() for char in run) and any(char.isalpha() for char in run)
    )


def _words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(_folded(text)):
        word = match.group()
        if not word.isascii() and _CJK.search(word):
            yield from (word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        elif len(word) <= _MAX_TERM:
            yield word


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _stem(word: str, language: str) -> str:
    return "~" + str(_stemmers()[language].stemWord(word))


def _stemmers() -> dict[str, Stemmer.Stemmer]:
    # A stemmer keeps state between calls, so each thread has its own.
    if not hasattr(_thread, "stemmers"):
        _thread.stemmers = {lang: Stemmer.Stemmer(name) for lang, name in LANGUAGES.items()}
    return _thread.stemmers  # type: ignore[no-any-return]


@cache
def is_stop_word(word: str, language: str) -> bool:
    """Whether a word carries no meaning of its own in `language`."""
    return unicodedata.normalize("NFKC", word).casefold() in _STOP[language]
