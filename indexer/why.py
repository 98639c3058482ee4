"""`notewarden why`: which layer lets somebody read a note or keeps them out, and by which entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from acl.directory import Account, Directory, make_directory
from acl.model import AccessList
from acl.sid import EVERYONE, Sid, bare
from acl.source import make_source
from acl.token import Token, build_token
from acl.why import explain
from db import audit, ledger, lists, notes, shares
from db.pool import Connection, Database
from db.search import reading
from indexer.actor import actor_of
from indexer.files import Files, opened_folder
from indexer.identity import opened_share
from indexer.notepaths import NotePaths, Place
from indexer.output import moment, shown
from indexer.reindex import index_paths
from indexer.whynow import doubts_about
from notewarden.display import printable, show_path
from notewarden.errors import NotewardenError, NotInNotes
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

_AHEAD = timedelta(seconds=5)  # a sweep further in the future is no sweep


@dataclass(frozen=True)
class Layer:
    """One list of one layer. Without an asker `readable` is None and `ace` tells the whole list."""

    layer: str
    path: bytes
    readable: bool | None
    ace: str
    sid: Sid | None = None
    through: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the layer as the contract writes it."""
        return {
            "layer": self.layer,
            "path": show_path(self.path),
            "readable": self.readable,
            "ace": self.ace,
            "sid": None if self.sid is None else bare(self.sid),
            "through": list(self.through),
        }


@dataclass(frozen=True)
class Why:
    """The decision about one note, and the layers that explain it; `doubts` are sentences beside it."""

    user: str | None
    place: Place
    readable: bool | None
    layers: list[Layer]
    doubts: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as the contract writes it."""
        return {
            "user": self.user,
            "share": self.place.share,
            "path": show_path(self.place.path),
            "readable": self.readable,
            "layers": [layer.as_json() for layer in self.layers],
        }

    def as_text(self) -> str:
        """Return the explanation for people, the verdict first."""
        name = f"{self.place.share}:{shown(self.place.path)}"
        verdict = "may read" if self.readable else "may not read"
        lines = [f"Who may read {name}:" if self.user is None else f"{printable(self.user)} {verdict} {name}"]
        for layer in self.layers:
            mark = {True: "yes", False: "no ", None: "   "}[layer.readable]
            where = f"{layer.layer} {shown(layer.path) or '(root)'}" if layer.layer != "share" else "share"
            via = f" through {', '.join(map(printable, layer.through))}" if layer.through else ""
            whose = f" [{bare(layer.sid)}]" if layer.sid is not None else ""
            lines.append(f"  {mark} {where}: {printable(layer.ace)}{whose}{via}")
        return "\n".join(lines)


class Explainer:
    """Explains the notes of one share."""

    def __init__(self, database: Database, directory: Directory, share: ShareSettings) -> None:
        self._database = database
        self._directory = directory
        self._share = share

    def explain(self, place: Place, account: Account | None) -> Why:
        """Return who may read `place`, or why `account` may or may not, after the audit row stands.

        The verdict is the decision's own; the layers only explain it. Raises AskerUnknown, NotInNotes,
        DirectoryUnreachable, DatabaseUnavailable.
        """
        token = None if account is None else build_token(self._directory, account)
        with self._database.owner() as conn:
            self._record(conn, place, account)
            layers = self._layers(conn, place, token)
        readable = None if token is None else self._decide(place, token)
        with self._database.owner() as conn:
            doubts = doubts_about(conn, self._share, self._directory, place, token)
        if readable is not None and readable != all(layer.readable for layer in layers):
            doubts.append(
                "the layers do not explain this verdict, which is the one that counts; run `notewarden sync`"
            )
        return Why(None if account is None else account.name, place, readable, layers, doubts)

    def _record(self, conn: Connection, place: Place, account: Account | None) -> None:
        actor = actor_of(self._directory)
        asker = actor if account is None else account.sid
        audit.add(conn, audit.Act(actor, asker, "why", f"{place.share}:{show_path(place.path)}"))

    def _decide(self, place: Place, token: Token) -> bool:
        with self._database.reader() as conn, reading(conn, token) as found:
            return any(share == place.share for _, share, _ in found.notes_at([place.path]))

    def _layers(self, conn: Connection, place: Place, token: Token | None) -> list[Layer]:
        policy = notes.policy(conn, place.share, place.path)
        if policy is None:
            raise NotInNotes("The note has left the index meanwhile.")
        listed = token.listed if token is not None and token.listed is not None else frozenset()
        lost = frozenset(
            one.sid
            for one in lists.principals(conn)
            if one.unresolvable or (token is not None and one.listed and one.sid not in listed)
        )
        teller = _Teller(self._directory, token, lost)
        folder = place.path.rpartition(b"/")[0]
        of_share = lists.stored(conn, policy.share_acl_ids)
        found = [*self._share_trouble(conn, token, bool(of_share))]
        found += [teller.layer("share", b"", one) for one in of_share.values()]
        audience = lists.stored(conn, policy.acl_ids).values()
        parents = [one for one in audience if one.role == "parent"]
        found += [teller.layer("parent", path, one) for path, one in self._placed(folder, parents)]
        found += [teller.layer("note", place.path, one) for one in audience if one.role != "parent"]
        return found

    def _share_trouble(self, conn: Connection, token: Token | None, has_lists: bool) -> Iterator[Layer]:
        """What closes the share whatever its lists say."""
        verdict = None if token is None else False
        row = next(iter(shares.overview(conn, [self._share.name])), None)
        swept = None if row is None else row["swept_at"]
        age = None if swept is None else shares.clock(conn) - swept
        if row is None or age is None or age >= row["max_age"] or age < -_AHEAD:
            words = f"the permissions are too old (last read completely: {moment(swept) or 'never'})"
            yield Layer("share", b"", verdict, f"closed to everybody: {words}; run `notewarden sync`")
        if not has_lists:
            yield Layer("share", b"", verdict, "closed to everybody: the share has no permissions stored")

    def _placed(self, folder: bytes, stored: Sequence[AccessList]) -> list[tuple[bytes, AccessList]]:
        """Find which folder each stored list is of. One that no folder has any more stands at the note's."""
        by_key = {one.key: one for one in stored}
        placed = [(path, by_key[one.key]) for path, one in self._live(folder) if one.key in by_key]
        left = by_key.keys() - {one.key for _, one in placed}
        return placed + [(folder, by_key[key]) for key in sorted(left)]

    def _live(self, folder: bytes) -> list[tuple[bytes, AccessList]]:
        """Read the guards of every folder from the root to the note's; none where the share is away."""
        files = Files()
        try:
            with opened_share(files, self._share.path) as root:
                source = make_source(self._share, self._directory)
                found = []
                for path in _down_to(folder):
                    with opened_folder(files, root, path) as fd:
                        found += [(path, one) for one in source.parent_lists(fd, path)]
                return found
        except (OSError, NotewardenError):
            return []


def explained(settings: Settings, path: str, user: str | None, share: str | None) -> Why:
    """Return the explanation for the note that `path` names. Raises NotInNotes, UsageError, AskerUnknown."""
    directory = make_directory(settings)
    account = None if user is None else directory.user(user)
    with Database.open(settings) as database:
        with database.owner() as conn:
            place = _find(conn, settings, path, share)
        of = next(one for one in settings.shares if one.name == place.share)
        return Explainer(database, directory, of).explain(place, account)


def _find(conn: Connection, settings: Settings, path: str, share: str | None) -> Place:
    """Find the note among the indexed ones. One that is only in trouble has no policy yet, but a reason."""
    try:
        return index_paths(conn, settings, share).note(path)
    except NotInNotes:
        troubled = ledger.standing(conn, [one.name for one in settings.shares])
        place = NotePaths((Place(one.share, one.path) for one in troubled), settings.shares, share).note(path)
        found = next(one for one in troubled if (one.share, one.path) == (place.share, place.path))
        raise NotInNotes(f"{printable(path)} is not indexed; it is {found.state}: {found.reason}.") from None


class _Teller:
    """Puts lists into words, for one asker or for nobody in particular."""

    def __init__(self, directory: Directory, token: Token | None, unresolvable: frozenset[Sid]) -> None:
        self._directory = directory
        self._token = token
        self._unresolvable = unresolvable

    def layer(self, layer: str, path: bytes, one: AccessList) -> Layer:
        """Return the list as a layer at `path`."""
        if self._token is None:
            return Layer(layer, path, None, self._whole(one))
        reason = explain(one, self._token, self._unresolvable)
        through = tuple(self._name(sid) for sid in reason.through)
        ace = reason.ace if reason.sid is None else self._words(reason.ace)
        return Layer(layer, path, reason.readable, ace, reason.sid, through)

    def _whole(self, one: AccessList) -> str:
        if one.status != "ok":
            return f"closed to everybody: {one.reason}"
        return "; ".join(map(self._words, one.entries)) or "nobody"

    def _words(self, entry: str) -> str:
        """Name whom an entry `verb SID words` speaks of."""
        verb, sid, words = (*entry.split(" ", 2), "")[:3]
        name = words if verb == "ignored" else self._name(Sid(sid))
        return f"{verb} {words}" if words.startswith(name) else f"{verb} {name} ({words})"

    def _name(self, sid: Sid) -> str:
        return "everyone" if sid == EVERYONE else self._directory.name_of(sid) or bare(sid)


def _down_to(folder: bytes) -> Iterator[bytes]:
    yield b""
    parts = folder.split(b"/") if folder else []
    for depth in range(1, len(parts) + 1):
        yield b"/".join(parts[:depth])
