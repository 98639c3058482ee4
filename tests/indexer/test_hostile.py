"""Notes made to break it, and names that nobody would choose: indexed, or in status with a reason."""

from __future__ import annotations

import os
import resource
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pytest
from share_world import ShareWorld

_BINARY = bytes(range(256)) * 400
_WORDS = "plain words of a plain note. "


@dataclass(frozen=True)
class Case:
    """A note's bytes; `found` is text that must be readable, None where the note is to be skipped."""

    name: str
    raw: bytes
    found: str | None = ""


def text(name: str, content: str, found: str | None = "") -> Case:
    return Case(name, content.encode("utf-8", "surrogatepass"), found)


CONTENTS = [
    text("empty", ""),
    text("blank lines", "\n" * 50_000),
    text("one long line", "word " * 50_000, "word word"),
    text("one long word", "x" * 150_000, "xxxx"),
    text("many sections", "".join(f"# S{n}\n\nsay {n}\n" for n in range(400)), "say 399"),
    text("too many sections", "".join(f"# S{n}\n\n{_WORDS * 20}\n" for n in range(2_100)), None),
    Case("too large", b"word " * 900_000, None),
    text("nul", f"# N\n\nbefore\0after {_WORDS}\n", "after plain words"),
    text("lone surrogates", f"# L\n\nlone \ud800 and \udfff {_WORDS}\n", "plain words"),
    text("deep lists", "".join("  " * n + f"- level {n}\n" for n in range(64)), "level 63"),
    text("deep quotes", "> " * 500 + "quoted deep\n", "quoted deep"),
    text(
        "unclosed fence",
        "# F\n\n```python\n# no heading\ntext in the fence\n" + "line\n" * 2_000,
        "in the fence",
    ),
    text("a million stars", "*" * 1_000_000, None),
    text("a million brackets", "[" * 60_000, "[[["),
    text("emphasis", "*a_b " * 15_000 + "end of stars", "end of stars"),
    text("backticks", "`" * 60_001 + " ticks\n", "ticks"),
    text("table", "|" * 15_000 + "\n" + "|-" * 15_000 + "\ncell of it\n", "cell of it"),
    text("references", "[a]: b\n" * 10_000 + "\nend of references\n", "end of references"),
    text("html", "<!--" * 10_000 + "\n\nend of comments\n", "end of comments"),
    text("front matter unclosed", "---\ntitle: x\n" + "k: v\n" * 20_000, "k: v"),
    text(
        "front matter bomb",
        "---\na: &a [x]\nb: [*a, *a]\ntags: [" + "a," * 10_000 + "]\n---\nbody of it\n",
        "body of it",
    ),
    text("bidi", f"# B\n\n\u202eevil\u202c \u2066iso\u2069 {_WORDS}\n", "plain words"),
    text("zero width", "# Z\n\n" + "\u200b\u200d\ufeff".join("zerowidth") + f" {_WORDS}\n", "plain words"),
    text("combining", "# C\n\na" + "\u0301" * 100_000 + f" {_WORDS}\n", "plain words"),
    text(
        "base64", "# D\n\n![x](data:image/png;base64," + "QUJD" * 100_000 + f")\n\n{_WORDS}\n", "plain words"
    ),
    text("controls", "# E\n\n\x1b[31mred\x1b[0m \x07 \x9b31m " + _WORDS, "plain words"),
    Case("pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + _BINARY, None),
    Case("zip", b"PK\x03\x04" + _BINARY, None),
    Case("elf", b"\x7fELF\x02\x01\x01" + bytes(20_000), None),
    Case("random bytes", os.urandom(100_000), None),
    Case("zeros", bytes(100_000), None),
    Case("utf-16 without bom", f"# Wide\n\n{_WORDS * 20}".encode("utf-16-le"), "plain words"),
    Case("utf-16 big endian", f"# Wide\n\n{_WORDS * 20}".encode("utf-16-be"), "plain words"),
    Case("utf-8 with bom", b"\xef\xbb\xbf# Bom\n\n" + _WORDS.encode(), "plain words"),
    Case(
        "cp1252",
        f"# Caf\u00e9\n\n\u201e{_WORDS}\u201c na\u00efve fa\u00e7ade\n".encode("cp1252"),
        "plain words",
    ),
    Case("broken utf-8", b"# Broken\n\nplain words \xff\xfe\xc3\x28 and on\n", "plain words"),
    Case("mixed line ends", b"# M\r\n\r\nfirst\rsecond\n\r\n## N\rthird plain words\n", "third plain words"),
    Case("carriage returns", b"# R\r\rplain words\r" * 2_000, "plain words"),
]

NAMES: list[bytes] = [
    "emoji \U0001f525\U0001f468\u200d\U0001f469\u200d\U0001f467.md".encode(),
    b"new\nline.md",
    b"esc\x1b[31m.md",
    b"tab\tquote\"'back\\slash.md",
    b"undecodable-\xff\xfe.md",
    b"undecodable-\xff\xfd.md",
    "caf\u00e9.md".encode(),
    unicodedata.normalize("NFD", "caf\u00e9.md").encode(),
    b"n" * 252 + b".md",
    "\u00fc".encode() * 126 + b".md",
    b"case.md",
    b"CASE.MD",
    b"Case.md",
    b"trailing.dots...md",
    b"trailing space .md",
    b" leading.md",
    b"-rf.md",
    b"%s%n{0}$(x).md",
    b"; drop table nw.note; --.md",
    b"\xe2\x80\xae.md",
    b"CON.md",
    b"*?<>|.md",
    b"http:.md",
    b"..md.md",
]


@pytest.fixture
def neighbours(world: ShareWorld) -> set[str]:
    names = {f"beside/{number}.md" for number in range(3)}
    for name in names:
        world.write(name)
    return names


def peak_bytes() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_hostile_contents(world: ShareWorld, neighbours: set[str]) -> None:
    places = {f"case{number:02d}.md": case for number, case in enumerate(CONTENTS)}
    for place, case in places.items():
        (world.root / place).write_bytes(case.raw)
    before = peak_bytes()
    report = world.sync()
    assert peak_bytes() - before < 300_000_000
    assert report.status == "ok"
    trouble = world.trouble()
    texts: dict[str, str] = {}
    for one in world.passages("alice"):
        path = os.fsdecode(one.path)
        texts[path] = texts.get(path, "") + one.content
    wrong = []
    for place, case in places.items():
        if case.found is None:
            fits = place not in texts and trouble[place].state == "skipped" and trouble[place].reason
        else:
            fits = place in world.paths() and case.found in texts.get(place, "") and place not in trouble
        if not fits:
            wrong.append((case.name, trouble.get(place), len(texts.get(place, ""))))
    assert not wrong
    assert neighbours <= world.readable("alice")
    world.whole()
    time_again = world.sync()
    assert (time_again.added, time_again.changed) == (0, 0)


def test_hostile_names(world: ShareWorld, neighbours: set[str]) -> None:
    root = os.fsencode(world.root)
    for number, name in enumerate(NAMES):
        for folder in (b"", b"folder-" + name[:200] + b"/"):
            place = Path(os.fsdecode(root + b"/" + folder + name))
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(b"# T\n\nnumber %d in %d bytes\n" % (number, len(folder)))
    wanted = {path for path in _walked(root) if not path.startswith(b"beside/")}
    report = world.sync()
    assert (report.status, report.added, report.unreadable) == ("ok", len(wanted) + 3, 0)
    assert {os.fsencode(path) for path in world.readable("alice")} - {
        os.fsencode(n) for n in neighbours
    } == wanted
    assert {bytes(path) for (path,) in world.rows("select path from nw.note")} >= wanted
    again = world.sync()
    assert (again.added, again.changed, again.moved, again.deleted) == (0, 0, 0, 0)
    world.whole()


def _walked(root: bytes) -> set[bytes]:
    top = Path(os.fsdecode(root))
    return {os.fsencode(file.relative_to(top)) for file in top.rglob("*.*") if file.is_file()}


@pytest.mark.prove
@pytest.mark.timeout(3_600)
def test_a_note_of_200_000_sections_with_the_limits_raised(make_world) -> None:
    world = make_world(max_bytes=50_000_000, max_chunks=1_000_000)
    world.write("a.md", "".join(f"# S{n}\n\nsay {n}\n" for n in range(200_000)))
    world.write("b.md", "word " * 4_000_000)
    world.write("c.md")
    assert world.sync().added == 3
    world.whole()
