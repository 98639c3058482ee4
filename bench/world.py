"""A made-up collection for measuring search: clustered vectors, Zipf's words, folders that share readers.

Everything follows from the seed. Departments own topics, topics own folders, folders own audiences of Zipf
size; the readers of a folder's notes are of its department, so what is near in meaning tends to be near in
rights, as in a real share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import Stemmer
from numpy.typing import NDArray

DIMENSION = 384
PER_NOTE = 6
WORDS = 120  # in a chunk
VISIBILITIES = (0.001, 0.01, 0.1, 0.5, 1.0)

_DEPARTMENTS = 40
_TOPICS = 800
_PER_AUDIENCE = 26  # chunks, on average
_VOCABULARY = 60_000
_OWN_WORDS = 150  # of a topic
_GROUPS = 300
_LISTS = 400  # different access lists: many folders have the same

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class World:
    """Parallel arrays by chunk, and by audience; `seen[v]` marks the audiences of the asker of a visibility.

    Notes are runs of chunks: chunk i belongs to note `note[i]`, a note to one audience. `words` are indexes
    into `vocabulary`, shape (chunks, WORDS).
    """

    vectors: Floats
    words: Ints
    note: Ints
    audience: Ints
    topic: Ints
    department: Ints  # by audience
    groups: Ints  # by audience, shape (audiences, 3)
    seen: dict[float, NDArray[np.bool_]]
    vocabulary: list[str]
    stems: list[str]

    @property
    def n_chunks(self) -> int:
        """Chunks in all."""
        return len(self.note)

    @property
    def n_audiences(self) -> int:
        """Audiences in all."""
        return len(self.department)

    def readable(self, visibility: float) -> NDArray[np.bool_]:
        """Return for each chunk whether the asker of this visibility may read it."""
        return self.seen[visibility][self.audience]

    def texts(self) -> list[str]:
        """Return the text of every chunk."""
        names = np.array(self.vocabulary, dtype=object)
        return [" ".join(row) for row in names[self.words]]


def make_world(chunks: int, seed: int = 1) -> World:
    """Return a world of `chunks` chunks."""
    chance = np.random.default_rng(seed)
    sizes = _zipf_sizes(chance, chunks)
    notes = _notes(sizes)
    topics_of = chance.integers(0, _TOPICS, len(sizes))
    department = np.sort(chance.choice(_DEPARTMENTS, len(sizes), p=_zipf(_DEPARTMENTS, 0.7)))
    # A folder's notes are of its department's topics, with one chunk in eight about anything.
    topics_of = (topics_of // _DEPARTMENTS) * _DEPARTMENTS + department
    topics_of = np.minimum(topics_of, _TOPICS - 1)
    audience = np.repeat(np.arange(len(sizes)), sizes)
    note_topic = np.where(
        chance.random(notes.max() + 1) < 0.125, chance.integers(0, _TOPICS, notes.max() + 1), -1
    )
    topic = np.where(note_topic[notes] >= 0, note_topic[notes], topics_of[audience])
    vocabulary, stems = _vocabulary(chance)
    return World(
        vectors=_vectors(chance, topic, notes),
        words=_words(chance, topic),
        note=notes,
        audience=audience,
        topic=topic,
        department=department,
        groups=chance.choice(_GROUPS, (_LISTS, 3), p=_zipf(_GROUPS, 1.0))[
            chance.choice(_LISTS, len(sizes), p=_zipf(_LISTS, 0.7))
        ],
        seen={v: _seen(chance, sizes, v) for v in VISIBILITIES},
        vocabulary=vocabulary,
        stems=stems,
    )


def near(chance: np.random.Generator, vectors: Floats, noise: float = 0.6) -> Floats:
    """Return a question vector near each row."""
    return _unit(vectors + noise * _random_unit(chance, len(vectors)))


def _zipf(n: int, power: float) -> NDArray[np.float64]:
    weights = 1.0 / np.arange(1, n + 1) ** power
    return np.asarray(weights / weights.sum())


def _zipf_sizes(chance: np.random.Generator, chunks: int) -> Ints:
    count = max(chunks // _PER_AUDIENCE, 5)
    sizes = np.maximum(1, np.floor(chunks * _zipf(count, 0.8))).astype(np.int64)
    sizes[0] += chunks - sizes.sum()
    return np.asarray(chance.permutation(sizes))


def _notes(sizes: Ints) -> Ints:
    """Number the notes: runs of up to PER_NOTE chunks that end where an audience does."""
    within = np.concatenate([np.arange(size) for size in sizes])
    return np.asarray(np.cumsum(within % PER_NOTE == 0) - 1)


def _vectors(chance: np.random.Generator, topic: Ints, notes: Ints) -> Floats:
    departments = _random_unit(chance, _DEPARTMENTS)
    topics = 0.6 * departments[np.arange(_TOPICS) % _DEPARTMENTS] + 0.8 * _random_unit(chance, _TOPICS)
    by_note = _random_unit(chance, int(notes.max()) + 1)
    return _unit(topics[topic] + 0.6 * by_note[notes] + 0.5 * _random_unit(chance, len(topic)))


def _random_unit(chance: np.random.Generator, rows: int) -> Floats:
    return _unit(chance.standard_normal((rows, DIMENSION), dtype=np.float32))


def _unit(rows: Floats) -> Floats:
    scaled: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def _vocabulary(chance: np.random.Generator) -> tuple[list[str], list[str]]:
    """Words of two to four syllables, all different, and their English stems."""
    syllables = [c + v + e for c in "bdfgklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "l")]
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        parts = chance.choice(syllables, (10_000, 3))
        lengths = chance.integers(2, 4, 10_000)
        words.update(dict.fromkeys("".join(row[:n]) for row, n in zip(parts, lengths, strict=True)))
    chosen = list(words)[:_VOCABULARY]
    return chosen, [str(stem) for stem in Stemmer.Stemmer("english").stemWords(chosen)]


def _words(chance: np.random.Generator, topic: Ints) -> Ints:
    """Seven words in ten from the common vocabulary by Zipf's law, the others from the topic's own."""
    shape = (len(topic), WORDS)
    common = np.searchsorted(np.cumsum(_zipf(_VOCABULARY, 1.0)), chance.random(shape, dtype=np.float32))
    own = chance.integers(2_000, _VOCABULARY, (_TOPICS, _OWN_WORDS))
    pick = np.searchsorted(np.cumsum(_zipf(_OWN_WORDS, 0.7)), chance.random(shape, dtype=np.float32))
    topical = own[topic[:, None], np.minimum(pick, _OWN_WORDS - 1)]
    chosen = np.where(chance.random(shape, dtype=np.float32) < 0.7, common, topical)
    return np.asarray(np.minimum(chosen, _VOCABULARY - 1))


def _seen(chance: np.random.Generator, sizes: Ints, visibility: float) -> NDArray[np.bool_]:
    """Mark runs of neighbouring audiences, and so departments, until the share of chunks is reached."""
    wanted = visibility * sizes.sum()
    marked = np.zeros(len(sizes), dtype=bool)
    if visibility >= 1:
        return ~marked
    held, longest = 0, max(1, int(len(sizes) * visibility / 4))
    # The biggest folders are for many: one of them alone would be more than a narrow asker's whole share.
    fitting = np.flatnonzero(sizes <= max(wanted / 3, np.quantile(sizes, 0.1)))
    while held < wanted:
        start = int(chance.integers(0, len(fitting)))
        for at in fitting[start : start + longest]:
            if not marked[at] and held < wanted:
                marked[at], held = True, held + int(sizes[at])
    return marked
