"""What a poll sees of changes: nothing where nothing is, each change once, and never by the times alone."""

from __future__ import annotations

import os
import time

from share_world import ShareWorld


def long_note(sections: int, changed: int | None = None) -> str:
    parts = []
    for number in range(sections):
        word = "amended" if number == changed else "original"
        body = f"Section {number} holds the {word} text of matter {number}. " * 6
        parts.append(f"## Matter {number}\n\n{body}\n")
    return "# Handbook\n\n" + "\n".join(parts)


def test_a_first_sync_indexes_and_a_second_reads_nothing(world: ShareWorld) -> None:
    for number in range(30):
        world.write(f"folder{number % 3}/note{number}.md")
    first = world.sync_all()
    assert (first.shares[0].seen, first.shares[0].added, first.shares[0].hashed) == (30, 30, 30)
    assert first.exit_code == 0
    assert first.chunks_embedded == len(world.embedder.texts) == 30
    world.whole()
    time.sleep(0.1)
    second = world.sync_all()
    share = second.shares[0]
    assert (share.seen, share.hashed, share.added, share.changed, share.acl_changed) == (30, 0, 0, 0, 0)
    assert (second.chunks_embedded, world.files.opened) == (0, [])
    assert world.readable("alice") == {f"folder{n % 3}/note{n}.md" for n in range(30)}


def test_an_edit_that_hides_behind_its_old_time_and_size_is_found(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\nThe old word stands here.\n")
    world.write("b.md")
    world.sync()
    before = file.stat()
    time.sleep(0.1)
    file.write_text("# A\n\nThe new word stands here.\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    report = world.sync()
    assert (report.hashed, report.changed) == (1, 1)
    assert "new word" in world.text("alice")
    assert "old word" not in world.text("alice")


def test_full_hashes_every_note_and_embeds_none(world: ShareWorld) -> None:
    for number in range(5):
        world.write(f"{number}.md")
    world.sync()
    time.sleep(0.1)
    report = world.sync_all(full=True)
    assert (report.shares[0].hashed, report.shares[0].changed, report.chunks_embedded) == (5, 0, 0)


def test_a_touched_note_is_hashed_and_not_embedded_and_then_left_alone(world: ShareWorld) -> None:
    file = world.write("a.md")
    world.sync()
    time.sleep(0.1)
    os.utime(file)
    report = world.sync_all()
    assert (report.shares[0].hashed, report.shares[0].changed, report.chunks_embedded) == (1, 0, 0)
    time.sleep(0.1)
    assert world.sync().hashed == 0


def test_a_one_word_edit_embeds_one_section_of_two_hundred(world: ShareWorld) -> None:
    file = world.write("handbook.md", long_note(200))
    world.sync()
    sections = len(world.embedder.texts)
    assert sections >= 200
    time.sleep(0.1)
    file.write_text(long_note(200, changed=120))
    report = world.sync_all()
    assert (report.chunks_embedded, report.chunks_reused) == (1, sections - 1)
    assert "amended" in world.embedder.texts[0]
    assert report.shares[0].changed == 1
    world.whole()


def test_a_changed_note_is_replaced_whole(world: ShareWorld) -> None:
    file = world.write("a.md", long_note(12))
    world.sync()
    note = world.note("a.md")
    time.sleep(0.1)
    file.write_text("# Short\n\nNothing of the matters is left.\n")
    report = world.sync()
    assert (report.added, report.changed, report.moved) == (0, 1, 0)
    assert "Matter" not in world.text("alice")
    assert world.note("a.md")["note_id"] == note["note_id"]
    world.whole()


def test_an_emptied_note_stays_a_note_without_text(world: ShareWorld) -> None:
    file = world.write("a.md")
    world.sync()
    time.sleep(0.1)
    file.write_bytes(b"")
    report = world.sync_all()
    assert (report.exit_code, report.shares[0].changed) == (0, 1)
    assert world.text("alice") == ""
    assert world.readable("alice") == {"a.md"}
    world.whole()


def test_names_and_texts_that_no_codec_likes_are_notes_too(world: ShareWorld) -> None:
    names = [
        b"\xff\xfe raw.md",
        b"eins\nzwei.md",
        "🦉.md".encode(),
        b"x" * 252 + b".md",
        b"\x1b[31m.md",
    ]
    for name in names:
        (world.root / os.fsdecode(name)).write_bytes(b"# Title\n\nSome words.\n")
    (world.root / "blob.md").write_text("# Blob\n\n" + "QUJD" * 20_000 + "\n")
    (world.root / "mixed.md").write_bytes("# Ümlaut\r\n\r\nGrüße\r".encode("cp1252"))
    report = world.sync_all()
    assert report.shares[0].added == len(names) + 2, world.trouble()
    assert world.readable("alice") == {*map(os.fsdecode, names), "blob.md", "mixed.md"}
    world.whole()


def test_a_note_that_changes_while_it_is_read_is_never_stored_half(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\ncalm\n")
    world.write("b.md")
    world.sync()
    time.sleep(0.1)
    file.write_text("# A\n\nrest\n")

    def rewrite(path: bytes) -> None:
        if path == b"a.md":
            file.write_text(f"# A\n\nrestless {time.time_ns()}\n")

    world.files.after_read = rewrite
    report = world.sync_all()
    assert (report.exit_code, report.shares[0].pending, report.shares[0].changed) == (6, 1, 0)
    assert "calm" in world.text("alice")
    assert "b.md" in world.readable("alice")
    world.files.heal()
    time.sleep(0.1)
    assert world.sync_all().exit_code == 0
    assert "restless" in world.text("alice")
    assert world.trouble() == {}


def test_junk_and_links_are_no_notes(world: ShareWorld) -> None:
    world.write("a.md")
    for name in (
        "@eaDir/a.md",
        "#recycle/a.md",
        ".trash/a.md",
        "~$a.md",
        "._a.md",
        "a.txt",
        ".obsidian/x.md",
    ):
        world.write(name)
    outside = world.folder / "secret.md"
    outside.write_text("# Outside\n\noutside text\n")
    (world.root / "link.md").symlink_to(outside)
    (world.root / "folder").symlink_to(world.folder)
    os.mkfifo(world.root / "pipe.md")
    report = world.sync_all()
    assert (report.shares[0].seen, report.shares[0].skipped, report.exit_code) == (1, 2, 0)
    assert world.readable("owner") == {"a.md"}
    assert {path: one.state for path, one in world.trouble().items()} == {
        "link.md": "skipped",
        "pipe.md": "skipped",
    }


def test_one_unavailable_share_does_not_stop_the_others(world: ShareWorld) -> None:
    other = world.folder / "other"
    other.mkdir()
    shares = [
        {"name": "gone", "path": world.folder / "missing", "acl": {"source": "posix"}},
        {"name": "other", "path": other, "acl": {"source": "posix"}},
    ]
    (world.folder / "missing").mkdir()
    world.settings = world._make(share=shares, directory={"source": "file", "file": world.people})
    (world.folder / "missing").rmdir()
    world.restart()
    (other / "a.md").write_text("# A\n\nText.\n")
    report = world.sync_all()
    assert [share.status for share in report.shares] == ["unavailable", "ok"]
    assert report.exit_code == 4
    assert report.shares[1].added == 1
