"""Answers without a language model: the best sentences of the passages, each a quote with its place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from answerer.keyword import Word
from answerer.sentences import Span, line_range, spans
from db.search import Passage
from notewarden.embedding.base import Embedder, Vectors
from notewarden.terms import count_terms

MOST = 3  # sentences in an answer
_MOST_MEASURED = 32  # sentences compared by vector: each costs some 10 ms
_ALWAYS_MEASURED = 12  # of these, so many without regard to words
_WORD_WEIGHT = 0.5
_RANK_WEIGHT = 0.15
_LEAST_OF_BEST = 0.5  # what scores below this part of the best sentence only dilutes the answer

_CODE = re.compile(r"=[a-z]{1,8}[-_](\d{3,})")


@dataclass(frozen=True)
class Quote:
    """A contiguous piece of a note. `text` is the note's own, `shown` the same on one line without marks."""

    passage: Passage
    text: str
    shown: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Question:
    """A question: its words with the asker's idf, and its vector if there is one."""

    words: Sequence[Word]
    vector: Vectors | None


@dataclass(frozen=True)
class _Sentence:
    passage: Passage
    place: int  # of its passage, from 1
    span: Span
    coverage: float

    @property
    def text(self) -> str:
        return self.passage.content[self.span[0] : self.span[1]]


def is_answerable(
    passages: Sequence[Passage], words: Sequence[Word], cosine: Mapping[int, float], floor: float
) -> bool:
    """Whether the passages can hold an answer at all.

    They can if one is as near as `floor`, or if one holds every rare word of the question: those of at least
    the median idf of its words in the asker's own notes. A word that none of them holds is as rare as can be.
    A code such as E-4021 that none of them holds cannot be answered by another code's passage, however near.
    """
    if _asks_for_unknown_code(words):
        return False
    ids = {passage.chunk_id for passage in passages}
    if max((cosine[chunk_id] for chunk_id in ids if chunk_id in cosine), default=-1.0) >= floor:
        return True
    rare = rare_words(words)
    return bool(rare) and bool(ids.intersection(*(word.chunk_ids for word in rare)))


def rare_words(words: Sequence[Word]) -> list[Word]:
    """Return the words whose idf is at least the median of all of them."""
    if not words:
        return []
    median = float(np.median([word.idf for word in words]))
    return [word for word in words if word.idf >= median]


def _asks_for_unknown_code(words: Sequence[Word]) -> bool:
    held = {term for word in words if len(word.holders) for term in word.terms}
    codes = (found for word in words for term in word.terms if (found := _CODE.fullmatch(term)))
    return any(code.group() not in held and f"~{code.group(1)}" not in held for code in codes)


def extract(
    passages: Sequence[Passage], question: Question, embedder: Embedder | None, cosine: Mapping[int, float]
) -> list[Quote]:
    """Return the best sentences: cosine + 0.5 x covered words by idf + 0.15 / rank of the passage.

    `embedder` measures single sentences; without it (a provider far away) the passage's own cosine counts.
    """
    sentences = _sentences(passages, question.words)
    measured = _worth_measuring(sentences) if embedder and question.vector is not None else sentences
    near = _nearness(measured, question, embedder, cosine)
    scores = [
        value + _WORD_WEIGHT * sentence.coverage + _RANK_WEIGHT / sentence.place
        for sentence, value in zip(measured, near, strict=True)
    ]
    order = sorted(range(len(measured)), key=lambda at: (-scores[at], at))
    order = [at for at in order if scores[at] >= _LEAST_OF_BEST * scores[order[0]]]
    quotes: dict[str, Quote] = {}
    for at in order:
        quote = _quote(measured[at])
        quotes.setdefault(quote.shown.casefold(), quote)
        if len(quotes) == MOST:
            break
    return list(quotes.values())


def compose(quotes: Sequence[Quote]) -> str:
    """Return the answer: one line for each quote, with its number behind."""
    return "\n".join(f"{quote.shown} [{number}]" for number, quote in enumerate(quotes, 1))


def _sentences(passages: Sequence[Passage], words: Sequence[Word]) -> list[_Sentence]:
    total = sum(word.idf for word in words) or 1.0
    found = []
    cut = [spans(passage.content) for passage in passages]
    if not any(cut):
        cut = [_whole(passage.content) for passage in passages]
    for place, (passage, pieces) in enumerate(zip(passages, cut, strict=True), 1):
        for span in pieces:
            terms = count_terms(passage.content[span[0] : span[1]], passage.language or "en").keys()
            covered = sum(word.idf for word in words if not terms.isdisjoint(word.terms))
            found.append(_Sentence(passage, place, span, covered / total))
    return found


def _whole(text: str) -> list[Span]:
    """Where there are headings only, a passage is quoted whole."""
    stripped = text.strip()
    start = text.find(stripped)
    return [(start, start + len(stripped))] if stripped else []


def _worth_measuring(sentences: Sequence[_Sentence]) -> list[_Sentence]:
    by_place = list(sentences[:_ALWAYS_MEASURED])
    others = sorted(sentences[_ALWAYS_MEASURED:], key=lambda one: (-one.coverage, one.place))
    return by_place + [one for one in others if one.coverage > 0][: _MOST_MEASURED - len(by_place)]


def _nearness(
    sentences: Sequence[_Sentence],
    question: Question,
    embedder: Embedder | None,
    cosine: Mapping[int, float],
) -> list[float]:
    if embedder is None or question.vector is None or not sentences:
        return [cosine.get(sentence.passage.chunk_id, 0.0) for sentence in sentences]
    vectors = embedder.embed_documents([_plain(sentence.text) for sentence in sentences])
    return [float(value) for value in vectors @ question.vector]


def _quote(sentence: _Sentence) -> Quote:
    passage = sentence.passage
    first, last = line_range(passage.content, sentence.span, passage.last_line)
    return Quote(passage, sentence.text, _plain(sentence.text), first, last)


def _plain(text: str) -> str:
    """Return a sentence on one line, without emphasis, quote and cell marks and numbers like ours."""
    lines = [re.sub(r"^\s*(?:>\s?)+", "", line) for line in text.splitlines()]
    joined = re.sub(r"(?<!!)\[([^\]\[]+)\]\([^)\s]*\)", r"\1", " ".join(lines))
    joined = re.sub(r"\*\*|__", "", joined)
    joined = re.sub(r"\s*\|\s*", " | ", joined).strip(" |") if joined.lstrip().startswith("|") else joined
    joined = re.sub(r"\[(\d+)\]", r"(\1)", joined)
    return " ".join(unicodedata.normalize("NFC", joined).split())
