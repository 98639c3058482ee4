"""Which note a file was before: by file id, else by content."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from db.notes import Known
from indexer.hint import inode_of, size_of
from indexer.reading import ReadNote


class MoveFinder:
    """Pairs files with notes whose own file is no longer where it was: gone, or replaced by another file."""

    def __init__(self, gone: Iterable[Known], replaced: Iterable[Known]) -> None:
        """A replaced note's file id may have been given to any new file: alone it proves nothing."""
        self.taken: set[int] = set()
        self._by_inode = {inode_of(note.hint): note for note in gone}
        self._sizes = {size_of(note.hint) for note in self._by_inode.values()}
        self._by_hash: dict[bytes, list[Known]] = {}
        for note in gone:
            self._sizes.add(size_of(note.hint))
            self._by_hash.setdefault(note.content_hash, []).append(note)
        self._replaced = {(inode_of(note.hint), note.content_hash): note for note in replaced}
        self._replaced_inodes = {inode for inode, _ in self._replaced}

    def may_match(self, inode: int, size: int) -> bool:
        """Tell cheaply whether a new file is worth reading."""
        return inode in self._by_inode or size in self._sizes or inode in self._replaced_inodes

    def take(
        self, inode: int, path: bytes, read: ReadNote, *, follow: Callable[[Known], bool]
    ) -> Known | None:
        """Return the note that the new file is, each one once.

        File systems give the id of a deleted file to the next new one. So where neither the text nor the name
        agrees, `follow` is asked whether that note must be followed all the same.
        """
        name = path.rpartition(b"/")[2]
        same = [
            one for one in self._by_hash.get(read.state.content_hash, []) if one.note_id not in self.taken
        ]
        same.sort(key=lambda one: (inode_of(one.hint) != inode, one.path.rpartition(b"/")[2] != name))
        found = same[0] if same else self._by_inode.get(inode)
        if found and not same and found.path.rpartition(b"/")[2] != name and not follow(found):
            found = None
        found = found or self._replaced.get((inode, read.state.content_hash))
        if found is None or found.note_id in self.taken:
            return None
        self.taken.add(found.note_id)
        return found

    def origins(self, read: ReadNote) -> list[Known]:
        """Return the notes that a file put in another one's place may have been before."""
        inode, content_hash = inode_of(read.state.hint), read.state.content_hash
        found = list(self._by_hash.get(content_hash, []))
        found += [note for (_, was), note in self._replaced.items() if was == content_hash]
        if inode in self._by_inode:
            found.append(self._by_inode[inode])
        return [note for note in found if note.note_id not in self.taken]
