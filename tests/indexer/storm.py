"""A seeded storm over a share: people at work, everything failing, and a witness that never stops reading."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from faulty_files import LOOK, OPEN_FOLDER, OPEN_NOTE, READ, SCAN, STAT
from share_world import MoodyEmbedder, ShareWorld

from db.search import reading
from notewarden.errors import DatabaseUnavailable, NotewardenError

PATIENCE_S = 0.5  # of a read: what stands unchanged must not be taken for hanging on a busy machine


class Weather:
    """The faults of one poll. `areas` are the folders they may hit; the steady ones never refuse us."""

    def __init__(self, world: ShareWorld, dice: random.Random, areas: list[str]) -> None:
        self._world = world
        self._dice = dice
        self._areas = areas
        empty, other = world.folder / "empty", world.folder / "other"
        empty.mkdir()
        other.mkdir()
        (other / "foreign.md").write_text("# Foreign\n\nof another share\n")
        self._foreign = [empty, other]
        self.kinds: list[Callable[[], None]] = [
            self.failing_folder,
            self.refusing_folder,
            self.stale_reads,
            self.gone_between,
            self.half_listing,
            self.hanging_read,
            self.slow,
            self.coarse_clock,
            self.changing_while_read,
            self.not_the_share,
            self.failing_look,
            self.model_down,
            self.model_refuses,
        ]

    def strike(self) -> str:
        """Let one fault, or two, stand until the next `clear`."""
        chosen = self._dice.sample(self.kinds, self._dice.choice([1, 1, 2]))
        for kind in chosen:
            kind()
        return "+".join(kind.__name__ for kind in chosen)

    def clear(self) -> None:
        self._world.files.heal()
        self._world.embedder.poison = {}

    def _area(self) -> bytes:
        return os.fsencode(self._dice.choice(self._areas))

    def _any_folder(self) -> bytes:
        return self._dice.choice([self._area(), b"steady", b""])

    def failing_folder(self) -> None:
        self._world.files.fail(self._any_folder(), self._dice.choice([errno.EIO, errno.ESTALE]), SCAN)

    def refusing_folder(self) -> None:
        self._world.files.fail(self._area(), errno.EACCES, OPEN_FOLDER)

    def stale_reads(self) -> None:
        kind = self._dice.choice([OPEN_NOTE, STAT, READ])
        error = self._dice.choice([errno.ESTALE, errno.EIO, errno.EACCES])
        self._world.files.fail(self._area(), error, kind)

    def gone_between(self) -> None:
        kind = self._dice.choice([OPEN_NOTE, OPEN_FOLDER])
        self._world.files.fail(self._area(), errno.ENOENT, kind, below=kind == OPEN_NOTE)

    def half_listing(self) -> None:
        self._world.files.halved[self._any_folder()] = self._dice.randrange(4)

    def hanging_read(self) -> None:
        self._world.files.hang(self._area(), self._dice.choice([OPEN_NOTE, READ, SCAN]))

    def slow(self) -> None:
        self._world.files.latency = 0.0005

    def coarse_clock(self) -> None:
        self._world.files.step_ns = self._dice.choice([1, 2]) * 1_000_000_000

    def changing_while_read(self) -> None:
        left = [3]

        def change(path: bytes) -> None:
            file = self._world.root / os.fsdecode(path)
            if left[0] and path.startswith(b"area") and file.is_file():
                left[0] -= 1
                with open(file, "a") as note:
                    note.write("\nadded while it was read\n")

        self._world.files.after_read = change

    def not_the_share(self) -> None:
        self._world.files.elsewhere = self._dice.choice(self._foreign)

    def failing_look(self) -> None:
        self._world.files.fail(self._area(), errno.EIO, LOOK)

    def model_down(self) -> None:
        self._world.embedder.poison = {"version": False}

    def model_refuses(self) -> None:
        self._world.embedder.poison = {"seven": True}


class People:
    """Edits, moves, deletes and permissions, in the files alone. `gone` grows with each deleted text."""

    def __init__(self, world: ShareWorld, dice: random.Random, notes: int) -> None:
        self._world = world
        self._dice = dice
        self._count = 0
        self._words: dict[str, str] = {}
        self.steady = {self._new(f"steady/part{n % 5}") for n in range(notes // 10)}
        self.secret = {self._new("secret", mode=0o600) for _ in range(notes // 10)}
        self.areas = [f"area{n}/topic{m}" for n in range(8) for m in range(3)]
        self.live: dict[str, str] = {}  # path: its text's own word
        for number in range(notes - len(self.steady) - len(self.secret)):
            path = self._new(self.areas[number % len(self.areas)])
            self.live[path] = self._words[path]
        self.deleted: set[str] = set()  # words of notes that stand no more

    def _new(self, folder: str, *, mode: int = 0o644) -> str:
        self._count += 1
        path = f"{folder}/note{self._count}.md"
        self._words[path] = self._write(path, mode)
        return path

    def _write(self, path: str, mode: int = 0o644) -> str:
        self._count += 1
        word = f"w{self._count}x"
        seven = "seven" if self._count % 7 == 0 else "even"
        parts = "\n\n".join(f"## Part {n}\n\n{seven} part {n} of {word}" for n in range(self._count % 3))
        self._world.write(path, f"# Title {word}\n\nversion {word} stands here {seven}\n\n{parts}\n", mode)
        return word

    def work(self) -> None:
        """Do a stretch of work."""
        for _ in range(self._dice.randrange(3, 14)):
            self._dice.choice([self._edit, self._edit, self._move, self._delete, self._chmod, self._add])()
        self._dice.choice([self._rename_folder, self._chmod_folder, self._mass_delete, *[int] * 6])()

    def _pick(self) -> str:
        return self._dice.choice(sorted(self.live))

    def _edit(self) -> None:
        path = self._pick()
        self.deleted.add(self.live[path])  # the old text stands no more
        self.live[path] = self._write(path)

    def _add(self) -> None:
        path = self._new(self._dice.choice(self.areas))
        self.live[path] = self._words[path]

    def _move(self) -> None:
        path = self._pick()
        self._count += 1
        target = f"{self._dice.choice(self.areas)}/moved{self._count}.md"
        (self._world.root / target).parent.mkdir(parents=True, exist_ok=True)
        (self._world.root / path).rename(self._world.root / target)
        self.live[target] = self.live.pop(path)

    def _delete(self) -> None:
        path = self._pick()
        (self._world.root / path).unlink()
        self.deleted.add(self.live.pop(path))

    def _chmod(self) -> None:
        (self._world.root / self._pick()).chmod(self._dice.choice([0o600, 0o644, 0o640]))

    def _chmod_folder(self) -> None:
        folder = self._world.root / self._dice.choice(self.areas)
        if folder.is_dir():
            folder.chmod(self._dice.choice([0o700, 0o755, 0o750]))

    def _rename_folder(self) -> None:
        old = self._dice.choice(self.areas)
        if not (self._world.root / old).is_dir():
            return
        self._count += 1
        new = f"{old.partition('/')[0]}/topic{self._count}n"
        (self._world.root / old).rename(self._world.root / new)
        self.areas[self.areas.index(old)] = new
        for path in [one for one in self.live if one.startswith(old + "/")]:
            self.live[new + path.removeprefix(old)] = self.live.pop(path)

    def _mass_delete(self) -> None:
        """More than are deleted at once, less than need a confirmation."""
        folder = self._dice.choice(self.areas)
        there = [path for path in self.live if path.startswith(folder + "/")][:40]
        for path in there:
            (self._world.root / path).unlink()
            self.deleted.add(self.live.pop(path))


class Witness(threading.Thread):
    """Reads as alice all the time; `complaints` are what she should not have seen, or missed."""

    def __init__(self, world: ShareWorld, people: People) -> None:
        super().__init__(daemon=True)
        self._world = world
        self._people = people
        self.gone: frozenset[str] = frozenset()
        self.complaints: list[str] = []
        self.looks = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.1):
            try:
                self.look()
            except DatabaseUnavailable:
                continue

    def end(self) -> None:
        self._over.set()
        self.join()

    def look_for_sure(self) -> None:
        """Read everything once, also where the server has just come back."""
        for _ in range(100):
            try:
                return self.look()
            except DatabaseUnavailable:
                time.sleep(0.1)
        raise AssertionError("the database did not come back")

    def look(self) -> None:
        """Read everything once."""
        gone = self.gone  # before the reading begins
        with (
            self._world.database.reader() as conn,
            reading(conn, self._world.token("alice")) as session,
        ):
            seen = session.passages(session.any_chunks(1_000_000))
        paths = {os.fsdecode(one.path) for one in seen}
        words = {word for one in seen for word in one.content.split() if word.endswith("x")}
        self.looks += 1
        if missed := self._people.steady - paths:
            self.complaints.append(f"missed {len(missed)} steady notes, such as {min(missed)}")
        if leaked := self._people.secret & paths:
            self.complaints.append(f"saw {min(leaked)}")
        if stale := words & gone:
            self.complaints.append(f"saw gone text {sorted(stale)[:3]}")


class Storm:
    """Polls under faults, with kills: `kill_database` ends the server as a power cut does."""

    def __init__(
        self,
        world: ShareWorld,
        seed: int,
        notes: int,
        kill_database: Callable[[], None],
        start_database: Callable[[], None],
        kill_midway: Callable[[float], None],
    ) -> None:
        self._world = world
        self._dice = random.Random(seed)
        self._people = People(world, self._dice, notes)
        self._weather = Weather(world, self._dice, self._people.areas)
        self._kill_database = kill_database
        self._start_database = start_database
        self._kill_midway = kill_midway
        self.witness = Witness(world, self._people)

    def run(self, polls: int) -> None:
        """Raise AssertionError with what went wrong."""
        self._world.sync()
        self.witness.start()
        try:
            for number in range(polls):
                self._poll(number, polls)
                assert not self.witness.complaints, self.witness.complaints[:3]
        finally:
            self._weather.clear()
            self.witness.end()
        assert not self.witness.complaints, self.witness.complaints[:3]
        self._settle()

    def _poll(self, number: int, polls: int) -> None:
        self._people.work()
        if number == polls // 2:
            self._world.embedder = MoodyEmbedder(24)
            self._world.restart()
        event = "a fault"
        if number % 10 == 4:
            self._kill_midway(self._dice.uniform(0.1, 0.8))
        elif number % 10 == 7:
            event = self._break_database()
        else:
            event = self._weather.strike()
            self._sync()
        self._weather.clear()
        if self._dice.random() < 0.5:
            deleted = frozenset(self._people.deleted)
            self._world.restart()
            if self._world.sync().status == "ok":
                self.witness.gone = self._proved(deleted)
        self.witness.look_for_sure()
        assert not self.witness.complaints, (event, self.witness.complaints[:3])

    def _proved(self, deleted: frozenset[str]) -> frozenset[str]:
        """The gone texts that may not show: an edited note's old text serves on while the note is pending."""
        waiting = self._world.trouble()
        share = {path for path, one in waiting.items() if one.state in ("pending", "parked")}
        excused = set()
        if share:
            for (content,) in self._world.rows(
                "select content from nw.note_chunk join nw.note using (note_id) where path = any (%s)",
                [os.fsencode(path) for path in share],
            ):
                excused |= set(content.split())
        return frozenset(deleted - excused)

    def _break_database(self) -> str:
        left = [self._dice.randrange(1, 4)]

        def count(path: bytes) -> None:
            left[0] -= 1
            if left[0] == 0:
                self._kill_database()

        self._world.files.before_read = count
        self._sync()
        self._start_database()
        return "the database was killed"

    def _sync(self) -> str:
        try:
            return self._world.sync(patience_s=PATIENCE_S).status
        except NotewardenError as error:
            assert error.exit_code in (4, 7), error
            return "broken off"

    def _settle(self) -> None:
        """Let everything heal: parked notes are tried again because somebody asks for it."""
        self._world.restart()
        time.sleep(0.1)
        self._world.sync()
        with self._world.database.owner() as conn:
            conn.execute("delete from nw.ledger where state = 'parked'")
        for _ in range(4):
            if self._world.sync_all().exit_code == 0:
                break
        assert self._world.sync_all().exit_code == 0


_NOTES = "select path, content_hash, size, title, encoding, language, written_on, status, tags from nw.note"
_CHUNKS = (
    "select n.path, c.seq, c.heading, c.first_line, c.last_line, c.start_byte, c.end_byte, c.content,"
    " c.embed_key, c.length, v.embedding::text from nw.note_chunk c join nw.note n using (note_id)"
    " join nw.vectors_{serving} v using (chunk_id) where c.generation_id = {serving}"
)
_POSTINGS = (
    "select n.path, c.seq, t.term, p.tf, p.length from nw.posting p join nw.note_chunk c using (chunk_id)"
    " join nw.note n using (note_id) join nw.term t using (term_id) where c.generation_id = {serving}"
)


def picture(world: ShareWorld) -> dict[str, set[object]]:
    """All that an index holds of a share, without ids and times, and who may read what."""
    serving = world.one("select generation_id from nw.generation where state = 'serving'")
    queries = {"notes": _NOTES, "chunks": _CHUNKS, "postings": _POSTINGS}
    found: dict[str, set[object]] = {
        name: {_frozen(row) for row in world.rows(query.replace("{serving}", str(serving)))}
        for name, query in queries.items()
    }
    for name in ("alice", "bob", "owner"):
        found[name] = set(world.readable(name))
    return found


def _frozen(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(
        bytes(one) if isinstance(one, memoryview) else tuple(one) if isinstance(one, list) else one
        for one in row
    )


def differences(one: dict[str, set[object]], other: dict[str, set[object]]) -> dict[str, object]:
    """What stands in only one of two pictures, a few of each kind."""
    return {
        name: (sorted(map(str, one[name] - other[name]))[:3], sorted(map(str, other[name] - one[name]))[:3])
        for name in one
        if one[name] != other[name]
    }


def copied(world: ShareWorld, folder: Path) -> Path:
    """A copy of the share's files with their modes."""
    shutil.copytree(world.root, folder)
    return folder
