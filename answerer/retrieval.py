"""From a question to passages: vector leg and keyword leg, fused, capped per note, folded, filled up."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from answerer.currency import adjusted
from answerer.folding import cap_and_fold
from answerer.keyword import KeywordLeg
from answerer.latecheck import Gate
from db.search import Passage, Reading
from notewarden.errors import UsageError
from notewarden.settings import SearchSettings

RRF_K = 60
"""Reciprocal rank fusion's constant (Cormack, Clarke, Büttcher 2009)."""

_LEAST_DEPTH = 50
_MOST_DEPTH = 4_000
_PHRASE = re.compile(r'"([^"]*)"')
_WITHOUT = re.compile(r"(?<!\S)-(\w[^\s\"]*)")
_DAYS = re.compile(r"(?<!\S)(since|until):(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?!\S)", re.IGNORECASE)
_MOST_CONDITIONS = 50


@dataclass(frozen=True)
class Query:
    """What is looked for. `vector` None: no vector leg; `phrases` must stand in it, `without` must not.

    `days`: the first and the last day of which a note may be, both included.
    """

    text: str
    vector: NDArray[np.float32] | None = None
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    days: tuple[date | None, date | None] = (None, None)

    @property
    def rules_out(self) -> bool:
        """Whether some readable chunks may not be shown."""
        return bool(self.phrases or self.without or any(self.days))


def clean(text: str) -> str:
    """Return `text` without NUL and lone surrogates, which no note's text holds and no query may."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def parse_words(words: str) -> Query:
    """Return the query of a search: quoted phrases must stand in a chunk, a `-word` must not.

    `since:2026-01-31` and `until:2026-12` narrow to notes of those days, months or years. Raises
    UsageError for more than 50 phrases and words: each is looked for in every readable chunk.
    """
    phrases = _distinct(found.strip() for found in _PHRASE.findall(words) if found.strip())
    unquoted, days = _days(_PHRASE.sub(" ", words))
    without = _distinct(found for found in _WITHOUT.findall(unquoted) if re.search(r"\w", found))
    if len(phrases) + len(without) > _MOST_CONDITIONS:
        raise UsageError(f"A search takes {_MOST_CONDITIONS} quoted phrases and -words at most; use fewer.")
    text = " ".join([*_WITHOUT.sub(" ", unquoted).split(), *phrases])
    return Query(text, None, phrases, without, days)


def _days(words: str) -> tuple[str, tuple[date | None, date | None]]:
    """Take `since:` and `until:` out; of what is no date they leave everything as it stands."""
    found: dict[str, date] = {}

    def take(match: re.Match[str]) -> str:
        year, month, day = (int(part) if part else 0 for part in match.group(2, 3, 4))
        last = match[1].lower() == "until"
        try:
            if day == 0:
                month = month or (12 if last else 1)
                day = monthrange(year, month)[1] if last else 1
            found[match[1].lower()] = date(year, month, day)
        except ValueError:  # the 31st of February
            return match[0]
        return " "

    left = _DAYS.sub(take, words)
    return left, (found.get("since"), found.get("until"))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


@dataclass(frozen=True)
class Ranking:
    """The candidates of both legs, best first, with what each leg said of them.

    `passages` are those of `order` that may be read, in that order; `complete`: no leg has more candidates.
    """

    order: list[int]
    keyword: KeywordLeg
    cosine: dict[int, float]
    vector_rank: dict[int, int]
    keyword_rank: dict[int, int]
    passages: list[Passage]
    complete: bool
    among: list[int] | None = field(default=None)


def rank(reading: Reading, query: Query, options: SearchSettings, k: int) -> Ranking:
    """Run both legs and fuse them, `k` being how many passages will be wanted.

    More candidates are fetched, and again more where those found are too much alike: a passage must not be
    lost behind hundreds of copies of another.
    """
    among = reading.matching(query.phrases, query.without, query.days) if query.rules_out else None
    leg = KeywordLeg(reading, query.text)
    depth = max(_LEAST_DEPTH, 4 * k)
    while True:
        ranking = _fuse(reading, query, options, (leg, among, depth))
        first, _ = cap_and_fold(ranking.passages, options.per_note, k)
        if len(first) >= k or ranking.complete or depth >= _MOST_DEPTH:
            return ranking
        depth = min(8 * depth, _MOST_DEPTH)


def _fuse(
    reading: Reading,
    query: Query,
    options: SearchSettings,
    legs: tuple[KeywordLeg, list[int] | None, int],
) -> Ranking:
    leg, among, depth = legs
    nearest = _nearest(reading, query, depth, (among, None if options.exact_only else options.exact_limit))
    worded = leg.top(depth, among)
    united = list(dict.fromkeys([*(chunk_id for chunk_id, _ in nearest), *worded]))
    scores = leg.okapi(united)
    by_words = sorted((c for c in united if scores[c] > 0), key=lambda c: (-scores[c], c))
    vector_rank = {chunk_id: place for place, (chunk_id, _) in enumerate(nearest, 1)}
    keyword_rank = {chunk_id: place for place, chunk_id in enumerate(by_words, 1)}
    fused = {
        chunk_id: _share(options.vector_weight, vector_rank.get(chunk_id))
        + _share(options.keyword_weight, keyword_rank.get(chunk_id))
        for chunk_id in united
    }
    for chunk_id in leg.exact_holders().intersection(united):
        fused[chunk_id] += _share(options.keyword_weight, 1)  # as if a third leg had it first
    passages = reading.passages(united)
    fused = adjusted(fused, passages, query.text, options)
    order = sorted(united, key=lambda c: (-fused[c], keyword_rank.get(c, len(united)), c))
    place = {chunk_id: at for at, chunk_id in enumerate(order)}
    return Ranking(
        order,
        leg,
        {chunk_id: 1.0 - distance for chunk_id, distance in nearest},
        vector_rank,
        keyword_rank,
        sorted(passages, key=lambda passage: place[passage.chunk_id]),
        len(nearest) < depth and len(worded) < depth,
        among,
    )


def _nearest(
    reading: Reading, query: Query, depth: int, among_or_limit: tuple[list[int] | None, int | None]
) -> list[tuple[int, float]]:
    among, exact_limit = among_or_limit
    if query.vector is None:
        return []
    if among is None:
        return reading.nearest(query.vector, depth, exact_limit)
    return reading.nearest_among(query.vector, among, depth)


def _share(weight: float, place: int | None) -> float:
    return 0.0 if place is None else weight / (RRF_K + place)


def select(reading: Reading, ranking: Ranking, gate: Gate, k: int, per_note: int) -> list[Passage]:
    """Return min(k, readable) passages: at most `per_note` of a note and no twin first, then the rest.

    Every note passes `gate` before it counts, fill-ups too.
    """
    chosen = _passed(ranking.passages, gate, k, per_note)
    if len(chosen) >= k:
        return chosen
    have = {passage.chunk_id for passage in chosen} | set(ranking.order)
    for fill in _fills(reading, ranking, k):
        if len(chosen) >= k:
            break
        fresh = reading.passages([chunk_id for chunk_id in fill if chunk_id not in have])
        have.update(fill)
        while fresh and len(chosen) < k:
            more, fresh = fresh[: k - len(chosen)], fresh[k - len(chosen) :]
            chosen += gate.passed(more)
    return chosen


def _passed(candidates: list[Passage], gate: Gate, k: int, per_note: int) -> list[Passage]:
    """Choose again without the notes that do not pass, until all that are chosen do.

    A passage that was left out as the twin of one that falls comes back, and only what may leave is checked.
    """
    while True:
        first, left = cap_and_fold(candidates, per_note, k)
        chosen = [*first, *left][:k]
        passing = {passage.note_id for passage in gate.passed(chosen)}
        barred = {passage.note_id for passage in chosen} - passing
        if not barred:
            return chosen
        candidates = [passage for passage in candidates if passage.note_id not in barred]


def _fills(reading: Reading, ranking: Ranking, k: int) -> Iterator[list[int]]:
    """Yield more readable chunks, in batches that grow until there are no more."""
    limit = len(ranking.order) + k
    while True:
        batch = reading.any_chunks(limit) if ranking.among is None else ranking.among[:limit]
        yield batch
        if len(batch) < limit:
            return
        limit *= 4
