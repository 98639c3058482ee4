"""Questions to a made-up world, and the truth that answers are measured by."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acl.sid import Sid
from acl.token import Token
from answerer.keyword import KeywordLeg
from answerer.latecheck import Gate
from answerer.retrieval import Query, rank, select
from bench.load import EXTRA_SIDS, sid_of
from bench.world import Floats, World, near
from db.pool import Database
from db.search import reading
from notewarden.settings import SearchSettings

TOP = 10
_RANGES = {"rare": (5_000, 60_000), "middle": (200, 5_000), "common": (0, 30)}


@dataclass(frozen=True)
class Question:
    """A vector near chunk `origin`, which the asker may read or not, and words of that chunk by frequency."""

    vector: Floats
    origin: int
    readable: bool
    words: dict[str, str]  # by kind: rare, middle, mixed, common


def token_of(visibility: float) -> Token:
    """The token of the asker of a visibility: one principal that opens something, and others that do not."""
    user = Sid(sid_of(visibility))
    others = {Sid(f"S-1-5-21-5-5-5-{n}") for n in range(EXTRA_SIDS)}
    sids = frozenset({user, Sid("S-1-1-0"), *others})
    return Token(user, "bench", sids, sids)


def questions(world: World, visibility: float, count: int, seed: int = 7) -> list[Question]:
    """Return `count` questions, half of them near text that the asker may not read (none at 100 %)."""
    chance = np.random.default_rng([seed, int(visibility * 1_000)])
    readable = world.readable(visibility)
    made = []
    for number in range(count):
        side = readable if number % 2 == 0 or readable.all() else ~readable
        origin = int(chance.choice(np.flatnonzero(side)))
        vector = near(chance, world.vectors[origin : origin + 1])[0]
        made.append(Question(vector, origin, bool(readable[origin]), _wordings(world, origin, chance)))
    return made


def _wordings(world: World, origin: int, chance: np.random.Generator) -> dict[str, str]:
    held = np.unique(world.words[origin])
    picked = {}
    for kind, (low, high) in _RANGES.items():
        fitting = held[(held >= low) & (held < high)]
        picked[kind] = list(chance.permutation(fitting)[: 6 if kind == "common" else 3])
    picked["mixed"] = [*picked["rare"][:1], *picked["middle"][:1], *picked["common"][:2]]
    return {kind: " ".join(world.vocabulary[at] for at in words) for kind, words in picked.items()}


def truth(world: World, visibility: float, vector: Floats, k: int = TOP) -> list[int]:
    """Return the places of the nearest readable chunks, nearest first, by comparing every one."""
    places = np.flatnonzero(world.readable(visibility))
    near_first = np.argsort(-(world.vectors[places] @ vector), kind="stable")[:k]
    return [int(place) for place in places[near_first]]


def recall(found: Sequence[int], wanted: Sequence[int]) -> float:
    """Return which part of `wanted` was found."""
    return len(set(found) & set(wanted)) / len(wanted) if wanted else 1.0


@dataclass(frozen=True)
class Asking:
    """Our own search as the answerer runs it: as the reader role, under row security."""

    database: Database
    options: SearchSettings = field(default_factory=SearchSettings)

    def nearest(self, visibility: float, vector: Floats) -> list[int]:
        """Return the places of the vector leg's top ten, from the token on."""
        limit = None if self.options.exact_only else self.options.exact_limit
        with self.database.reader() as conn, reading(conn, token_of(visibility)) as held:
            return [chunk_id - 1 for chunk_id, _ in held.nearest(vector, 50, limit)[:TOP]]

    def by_words(self, visibility: float, words: str) -> list[int]:
        """Return the places of the keyword leg's top ten."""
        with self.database.reader() as conn, reading(conn, token_of(visibility)) as held:
            return [chunk_id - 1 for chunk_id in KeywordLeg(held, words).top(TOP)]

    def hybrid(self, visibility: float, vector: Floats, words: str) -> list[int]:
        """Return the places of the passages shown, from the token to their text."""
        token = token_of(visibility)
        with self.database.reader() as conn, reading(conn, token) as held:
            ranking = rank(held, Query(words, vector), self.options, TOP)
            gate = Gate("off", None, token)
            return [one.chunk_id - 1 for one in select(held, ranking, gate, TOP, self.options.per_note)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `work` returns and its milliseconds."""
    began = time.perf_counter()
    result = work()
    return result, (time.perf_counter() - began) * 1_000


def quantiles(times: Sequence[float]) -> str:
    """Return p50 and p95 in milliseconds."""
    return f"{np.quantile(times, 0.5):6.1f} {np.quantile(times, 0.95):6.1f}"
