"""Another way to index is built beside the one that serves, and takes over whole."""

from __future__ import annotations

import errno

from faulty_files import SCAN
from share_world import MoodyEmbedder, ShareWorld


def serving(world: ShareWorld) -> str:
    return world.one("select embedder from nw.generation where state = 'serving'")


def switch_model(world: ShareWorld, dimension: int = 24) -> MoodyEmbedder:
    world.embedder = MoodyEmbedder(dimension)
    world.restart()
    return world.embedder


def test_another_model_takes_over_after_one_sync(world: ShareWorld) -> None:
    for number in range(10):
        world.write(f"{number}.md")
    world.sync()
    old = {one.chunk_id for one in world.passages("alice")}
    new = switch_model(world)
    seen_meanwhile = []
    report = world.sync_all(
        progress=lambda _: seen_meanwhile.append({one.chunk_id for one in world.passages("alice")})
    )
    assert report.chunks_embedded == 10
    assert seen_meanwhile
    assert all(seen == old for seen in seen_meanwhile)
    assert serving(world) == new.identity
    assert world.readable("alice") == {f"{n}.md" for n in range(10)}
    assert len(world.passages("alice")) == 10
    assert world.one("select count(distinct generation_id) from nw.note_chunk") == 1
    world.whole()
    assert world.sync_all().chunks_embedded == 0


def test_a_model_that_fails_leaves_the_old_one_serving(world: ShareWorld) -> None:
    for number in range(10):
        world.write(f"{number}.md")
    world.sync()
    old = world.embedder.identity
    new = switch_model(world)
    new.poison = {"tells of 7.md": False}
    assert world.sync_all().exit_code == 6
    assert (serving(world), len(world.passages("alice"))) == (old, 10)
    new.poison = {}
    report = world.sync_all()
    assert serving(world) == new.identity
    assert report.chunks_embedded < 10
    assert len(world.passages("alice")) == 10
    world.whole()


def test_a_parked_note_does_not_keep_the_new_model_away_for_ever(world: ShareWorld) -> None:
    world.write("a.md")
    file = world.write("b.md", "# B\n\npoison\n")
    world.sync()
    new = switch_model(world)
    new.poison = {"poison": True}
    for _ in range(4):
        world.sync()
    assert serving(world) == new.identity
    assert world.trouble()["b.md"].state == "parked"
    new.poison = {}
    file.write_text("# B\n\nsound words\n")
    world.sync()
    assert "sound words" in world.text("alice")
    world.whole()


def parked(world: ShareWorld, *names: str) -> None:
    """Let these notes be edited and then refused until they are parked, their old rows serving on."""
    for name in names:
        (world.root / name).write_text(f"# {name}\n\npoison in {name}\n")
    world.embedder.poison = {"poison": True}
    for _ in range(3):
        world.sync()
    assert {world.trouble()[name].state for name in names} == {"parked"}


def test_a_note_parked_under_the_old_model_is_tried_by_the_new_one(world: ShareWorld) -> None:
    for name in ("a.md", "b.md"):
        world.write(name)
    world.sync()
    world.write("never.md")
    parked(world, "b.md", "never.md")
    new = switch_model(world)
    assert world.sync_all().exit_code == 0
    assert serving(world) == new.identity
    assert {one.path for one in world.passages("alice")} == {b"a.md", b"b.md", b"never.md"}
    assert "poison in b.md" in world.text("alice")
    assert world.trouble() == {}
    world.whole()


def test_a_note_that_the_new_model_refuses_too_is_tried_once_and_said_to_be_lacking(
    world: ShareWorld,
) -> None:
    for name in ("a.md", "b.md"):
        world.write(name)
    world.sync()
    parked(world, "b.md")
    new = switch_model(world)
    new.poison = {"poison": True, "tells of a.md": False}
    world.sync()
    assert serving(world) != new.identity
    assert "poison" not in world.text("alice")
    assert "tells of b.md" in world.text("alice")
    new.poison = {"poison": True}
    for _ in range(3):
        report = world.sync()
    assert serving(world) == new.identity
    trouble = world.trouble()["b.md"]
    assert (report.parked, trouble.state, trouble.attempts) == (1, "parked", 4)
    assert "Nothing of it is found" in trouble.reason
    assert {one.path for one in world.passages("alice")} == {b"a.md"}


def test_a_failing_folder_loses_nothing_when_the_model_changes(world: ShareWorld) -> None:
    names = {f"docs/{number}.md" for number in range(5)} | {"a.md"}
    for name in names:
        world.write(name)
    world.sync()
    world.files.fail(b"docs", errno.EIO, SCAN)
    switch_model(world)
    for _ in range(2):
        world.sync()
        assert {one.path.decode() for one in world.passages("alice")} == names
    world.files.heal()
    world.sync()
    assert serving(world) == world.embedder.identity
    assert {one.path.decode() for one in world.passages("alice")} == names
    world.whole()


def test_a_folder_that_refused_us_at_the_switch_is_made_anew_when_it_opens(world: ShareWorld) -> None:
    world.write("a.md")
    world.write("docs/b.md")
    world.sync()
    world.files.fail(b"docs", errno.EACCES, SCAN)
    switch_model(world)
    world.sync()
    world.sync()
    world.files.heal()
    world.sync()
    assert serving(world) == world.embedder.identity
    assert {one.path for one in world.passages("alice")} == {b"a.md", b"docs/b.md"}
    world.whole()


def test_rights_and_moves_while_a_generation_is_built_hold_in_both(world: ShareWorld) -> None:
    world.write("a.md", "# A\n\nslow\n")
    file = world.write("b.md")
    mover = world.write("c.md")
    world.sync()
    new = switch_model(world)
    new.poison = {"slow": False}
    world.sync()
    file.chmod(0o600)
    (world.root / "sub").mkdir()
    mover.rename(world.root / "sub" / "c.md")
    world.sync()
    assert world.readable("alice") == {"a.md", "sub/c.md"}
    assert {one.path for one in world.passages("alice")} == {b"a.md", b"sub/c.md"}
    new.poison = {}
    world.sync()
    assert serving(world) == new.identity
    assert world.readable("alice") == {"a.md", "sub/c.md"}
    world.whole()
