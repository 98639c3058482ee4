"""Which names are notes."""

from __future__ import annotations

import pytest

from indexer.patterns import Patterns

PLAIN = Patterns(["**/*.md"], [])


@pytest.mark.parametrize(
    "path",
    ["a.md", "A.MD", "hr/a.md", "a b/ü.md", "x\ny.md", "eaDir/a.md", "a.b.md", "~/a.md", ".a.md"],
)
def test_notes(path: str) -> None:
    assert PLAIN.takes_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "a.txt",
        "amd",
        "a.md.txt",
        "@eaDir/a.md",
        "hr/@eaDir/x/a.md",
        "#recycle/a.md",
        "#RECYCLE/a.md",
        "@Recycle/a.md",
        "$RECYCLE.BIN/a.md",
        "System Volume Information/a.md",
        "lost+found/a.md",
        ".snapshot/a.md",
        ".Trash-1000/a.md",
        ".git/a.md",
        ".x\ny/a.md",
        "~$a.md",
        "~$a\nb.md",
        "._a.md",
        ".#a.md",
        ".~lock.a.md",
        "a.md~",
        "a.md.tmp",
        "a.md.swp",
        "a.md.bak",
    ],
)
def test_junk(path: str) -> None:
    assert not PLAIN.takes_path(path)


def test_the_junk_of_editors_is_junk_under_any_pattern() -> None:
    everything = Patterns(["**"], [])
    for path in ("a.md~", "#a.md#", "a.tmp", "a.swp", "x.crdownload", "._a", "~$a"):
        assert not everything.takes_path(path)
    assert everything.takes_path("dir/a")


@pytest.mark.parametrize(
    ("glob", "takes", "leaves"),
    [
        ("*.md", ["a.md"], ["x/a.md"]),
        ("**/*.md", ["a.md", "x/y/a.md"], ["a.mdx"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/y/a.md", "DOCS/a.md"], ["docsx/a.md", "x/docs/a.md", "a.md"]),
        ("docs/*/a?.md", ["docs/x/a1.md"], ["docs/a1.md", "docs/x/y/a1.md", "docs/x/a.md", "docs/x/a/.md"]),
        ("[ab].md", ["a.md", "b.md"], ["c.md", "ab.md", "[ab].md"]),
        ("[!ab].md", ["c.md"], ["a.md", "b.md"]),
        ("a+(b).md", ["a+(b).md"], ["aab.md"]),
        ("a[.md", ["a[.md"], ["a.md"]),
        ("*.{md}", ["a.{md}"], ["a.md"]),
    ],
)
def test_globs(glob: str, takes: list[str], leaves: list[str]) -> None:
    patterns = Patterns([glob], [])
    assert [path for path in takes if not patterns.takes_path(path)] == []
    assert [path for path in leaves if patterns.takes_path(path)] == []


def test_what_is_excluded_is_no_note_though_it_is_included() -> None:
    patterns = Patterns(["**/*.md"], ["archive/**", "**/draft-*.md", "private"])
    for path in ("archive/a.md", "archive/x/a.md", "x/draft-1.md", "draft-1.md", "private/a.md"):
        assert not patterns.takes_path(path)
    for path in ("archives/a.md", "x/archive/a.md", "x/adraft-1.md", "private2/a.md", "x/private/a.md"):
        assert patterns.takes_path(path)


def test_a_pattern_never_matches_beyond_its_meaning() -> None:
    """Dots and other signs of regular expressions stand for themselves."""
    patterns = Patterns(["**/*.md"], ["a.c/*", "x|y.md", "^z.md$"])
    assert patterns.takes_path("abc/n.md")
    assert patterns.takes_path("x.md")
    assert patterns.takes_path("z.md")
    assert not patterns.takes_path("a.c/n.md")
    assert not patterns.takes_path("x|y.md")
