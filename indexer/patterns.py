"""Which names are notes: the share's include and exclude patterns, and the junk that no share means."""

from __future__ import annotations

import re
from collections.abc import Sequence

# What NAS systems, file managers and editors leave beside people's files; folders that begin with a dot are
# configuration, versioning or recycle bins everywhere.
_JUNK_FOLDERS = (
    r"\..*",
    r"@eaDir",
    r"#recycle",
    r"@Recycle",
    r"@Recently-Snapshot",
    r"\$RECYCLE\.BIN",
    r"System Volume Information",
    r"lost\+found",
)
_JUNK_ENDS = r".*~|.*\.(tmp|temp|swp|swo|swx|bak|part|crdownload)"
_JUNK_NOTES = (
    r"~\$.*",
    r"\._.*",
    r"\.#.*",
    r"#.*#",
    r"\.~lock\..*",
    _JUNK_ENDS,
)


# How a junk name begins that does not show at its end.
MAYBE_JUNK = "~.#"


class Patterns:
    """Decides by name alone. Paths and names are str by surrogateescape; case does not matter in patterns."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        """`include` and `exclude` are globs over the path below the root: `**/` is any folders, also none."""
        self._suffix = _plain_suffix(include)
        self._include = _any_of(include)
        # Most junk shows at the start of a name; at its end only where the suffix allows it.
        self._ends_like_junk = self._suffix is None or re.fullmatch(_JUNK_ENDS, self._suffix) is not None
        # The one question that decides for nearly every file: its name's end; () where more has to be asked.
        plain = self._suffix is not None and not exclude and not self._ends_like_junk
        self.plain_suffix: str | tuple[str, ...] = self._suffix if plain and self._suffix else ()
        self._exclude = _any_of(exclude) if exclude else None
        self._junk_folder = re.compile("|".join(_JUNK_FOLDERS), re.IGNORECASE | re.DOTALL)
        self._junk_note = re.compile("|".join(_JUNK_NOTES), re.IGNORECASE | re.DOTALL)

    def takes_folder(self, path: str, name: str) -> bool:
        """Tell whether a folder is walked."""
        if self._junk_folder.fullmatch(name):
            return False
        return self._exclude is None or not self._exclude.fullmatch(path)

    def is_junk(self, name: str) -> bool:
        """Tell whether NAS systems and editors leave an entry of this name in emptied folders too."""
        return bool(self._junk_folder.fullmatch(name) or self._junk_note.fullmatch(name))

    def takes_note(self, prefix: str, name: str) -> bool:
        """Tell whether a file is a note; `prefix` is its folder with a trailing slash, or ""."""
        if self._suffix is not None:
            if not name.lower().endswith(self._suffix):
                return False
        elif not self._include.fullmatch(prefix + name):
            return False
        if (self._ends_like_junk or name[0] in MAYBE_JUNK) and self._junk_note.fullmatch(name):
            return False
        return self._exclude is None or not self._exclude.fullmatch(prefix + name)

    def takes_path(self, path: str) -> bool:
        """Tell whether the file at a whole path would be reached and taken."""
        *folders, name = path.split("/")
        walked = all(
            self.takes_folder("/".join(folders[: depth + 1]), one) for depth, one in enumerate(folders)
        )
        return walked and self.takes_note("".join(one + "/" for one in folders), name)


def _plain_suffix(include: Sequence[str]) -> str | None:
    # The usual pattern "**/*.md" asks only for the end of the name: no regular expression per file.
    if len(include) == 1 and (found := re.fullmatch(r"\*\*/\*(\.[\w.]+)", include[0])):
        return found.group(1).lower()
    return None


def _any_of(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile(
        "|".join(f"(?:{_translate(glob)})" for glob in globs) or r"(?!)", re.IGNORECASE | re.DOTALL
    )


def _translate(glob: str) -> str:
    parts = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", glob, re.DOTALL):
        if piece == "**/":
            parts.append("(?:.*/)?")
        elif piece == "**":
            parts.append(".*")
        elif piece == "*":
            parts.append("[^/]*")
        elif piece == "?":
            parts.append("[^/]")
        elif piece.startswith("[") and len(piece) > 1:
            parts.append(
                "[" + piece[1:-1].replace("!", "^", 1 if piece[1] == "!" else 0).replace("\\", r"\\") + "]"
            )
        else:
            parts.append(re.escape(piece))
    return "".join(parts)
