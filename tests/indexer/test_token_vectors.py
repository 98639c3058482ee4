"""Token vectors: made with a note's own vectors, kept with its chunks, made up for where they are missing."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from share_world import MoodyEmbedder, ShareWorld

from db import housekeeping
from db.pool import Database
from indexer import poll
from indexer.faults import Clock, Faults
from indexer.gate import gate
from notewarden.embedding.base import Vectors, WithTokens
from notewarden.settings import Settings

PARTS = (
    "# One\n\nThe first part is about cats and cats alone, as everybody here will certainly know by now.\n\n"
)
MORE = (
    "# Two\n\nThe second part is about dogs, which is why it stands by itself and not with that about cats.\n"
)


class TokenEmbedder(MoodyEmbedder):
    """Gives as token vectors what tells of which string, less its head, and by which model they were made."""

    def embed_with_tokens(self, texts: Sequence[str], heads: Sequence[int]) -> tuple[Vectors, list[bytes]]:
        own = [text[head:] for text, head in zip(texts, heads, strict=True)]
        return self.embed_documents(texts), [tokens_of(self.identity, text) for text in own]


def tokens_of(identity: str, text: str) -> bytes:
    return hashlib.sha256(f"{identity} {text}".encode()).digest()


@pytest.fixture
def choose(
    tmp_path: Path, database: Database, settings_factory: Callable[..., Settings]
) -> Callable[[str], ShareWorld]:
    """Return the share under a configuration with this reranker; the database is the same each time."""

    def chosen(provider: str) -> ShareWorld:
        def make(**tables: Any) -> Settings:
            return settings_factory(**tables, rerank={"provider": provider})

        world = ShareWorld(tmp_path, database, make)
        world.embedder = TokenEmbedder()
        world.restart()
        return world

    return chosen


def stored(world: ShareWorld) -> dict[str, bytes]:
    rows = world.rows(
        "select c.content, t.vectors from nw.note_chunk c join nw.token_vectors t using (chunk_id)"
    )
    return {content.strip(): bytes(vectors) for content, vectors in rows}


def require_all(world: ShareWorld) -> None:
    """Each chunk has those of its own text, whatever stands before it where it is embedded."""
    texts = {row[0].strip() for row in world.rows("select content from nw.note_chunk")}
    assert stored(world) == {text: tokens_of(world.embedder.identity, text) for text in texts}
    world.whole()


def test_without_the_reranker_none_are_kept(choose: Callable[[str], ShareWorld]) -> None:
    world = choose("none")
    world.write("a.md")
    world.sync()
    assert world.rows("select from nw.token_vectors") == []


def test_each_chunk_gets_its_own_from_the_run_that_embeds_it(choose: Callable[[str], ShareWorld]) -> None:
    world = choose("local")
    world.write("a.md", PARTS + MORE)
    world.write("b.md")
    world.sync()
    assert len(world.embedder.texts) == 3 == len(stored(world))
    require_all(world)


def test_an_edit_makes_only_what_is_new_and_a_move_or_a_delete_leaves_none_behind(
    choose: Callable[[str], ShareWorld],
) -> None:
    world = choose("local")
    world.write("a.md", PARTS + MORE)
    world.sync()
    world.write("a.md", PARTS + MORE.replace("dogs", "horses"))
    world.sync()
    assert len(world.embedder.texts) == 1 and "horses" in world.embedder.texts[0]
    require_all(world)
    world.write("b.md")
    (world.root / "a.md").rename(world.root / "c.md")
    world.sync()
    require_all(world)
    (world.root / "c.md").unlink()
    world.sync()
    assert len(stored(world)) == 1
    require_all(world)


def test_they_follow_their_note_to_another_audience(choose: Callable[[str], ShareWorld]) -> None:
    world = choose("local")
    world.write("a.md")
    world.write("b.md")
    world.sync()
    (world.root / "a.md").chmod(0o600)
    world.sync()
    require_all(world)
    (row,) = world.rows(
        "select t.audience_id, n.audience_id from nw.token_vectors t join nw.note_chunk c using (chunk_id)"
        " join nw.note n using (note_id) where n.path = 'a.md'"
    )
    assert row[0] == row[1] != world.note("b.md")["audience_id"]


def test_what_was_indexed_before_is_made_up_for_part_by_part(
    choose: Callable[[str], ShareWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = choose("none")
    for number in range(5):
        world.write(f"{number}.md")
    world.sync()
    world = choose("local")
    monkeypatch.setattr(poll, "_TOKEN_CHUNKS", 2)
    counts = []
    for _ in range(4):
        report = world.sync()
        assert (report.changed, report.added, report.pending) == (0, 0, 0)
        counts.append((len(world.embedder.texts), len(stored(world))))
    assert counts == [(2, 2), (2, 4), (1, 5), (0, 5)]
    require_all(world)
    assert len(world.passages("alice")) == 5


def test_a_note_that_cannot_be_made_keeps_no_other_waiting(
    choose: Callable[[str], ShareWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = choose("none")
    for number in range(3):
        world.write(f"{number}.md")
    world.sync()
    world = choose("local")
    world.embedder.poison = {"0.md": True}
    monkeypatch.setattr(poll, "_TOKEN_CHUNKS", 1)
    for _ in range(6):
        world.sync()
    assert len(stored(world)) == 2
    assert set(world.trouble()) == {"0.md"}
    assert len(world.passages("alice")) == 3, "its text serves on"


def test_another_model_brings_its_own(choose: Callable[[str], ShareWorld]) -> None:
    world = choose("local")
    world.write("a.md", PARTS + MORE)
    world.sync()
    world.write("b.md")
    world.sync()
    world.write("b.md", MORE)  # waits for the moment when the new model takes over
    world.embedder = TokenEmbedder(24)
    world.restart()
    world.sync()
    assert world.one("select count(*) from nw.generation where state = 'serving' and dimension = 24") == 1
    require_all(world)
    assert world.readable("alice") == {"a.md", "b.md"}


def test_more_than_one_statement_holds_are_stored_and_a_stray_audience_is_mended(
    choose: Callable[[str], ShareWorld],
) -> None:
    world = choose("local")
    world.write("a.md", "".join(MORE.replace("Two", f"Number {number}") for number in range(120)))
    world.sync()
    assert world.one("select count(*) from nw.token_vectors") == 120
    with world.database.owner() as conn:
        conn.execute("update nw.token_vectors set audience_id = 0 where chunk_id % 2 = 0")
        assert housekeeping.verify(conn)["broken_chunks"] == 1
    world.sync()
    world.whole()
    assert world.one("select count(*) from nw.token_vectors") == 120


def test_the_daemons_door_gives_them_in_slices() -> None:
    model = TokenEmbedder()
    door = gate(model, Faults(Clock(time.monotonic)), lambda: False, slice_texts=2)
    assert isinstance(door, WithTokens)
    texts, heads = ["to one", "to two", "to three"], [3, 3, 3]
    rows, tokens = door.embed_with_tokens(texts, heads)
    np.testing.assert_array_equal(rows, model.embed_documents(texts))
    assert tokens == [tokens_of(model.identity, text) for text in ("one", "two", "three")]
    assert door.take_tokens() == 0
    plain = gate(MoodyEmbedder(), Faults(Clock(time.monotonic)), lambda: False, slice_texts=2)
    assert not isinstance(plain, WithTokens)
