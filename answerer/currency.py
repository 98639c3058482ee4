"""Which of several passages holds now: superseded notes step back, and newer ones forward if asked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date

from db.search import Passage
from notewarden.settings_sections import SearchSettings

BACK = 0.5
"""What remains of the score of a passage that its own note calls superseded."""

_OLD_STATUS = re.compile(
    r"supersed|deprecat|obsolet|outdated|archiv|replaced|withdrawn|expired|retired|veraltet|ersetzt|abgel|"
    r"überholt|außer kraft|remplac|périm|sustitu|caduc",
    re.IGNORECASE,
)
_OLD_NAME = re.compile(
    r"(?:^|/)(?:archive|archives|archived|archiv|old|obsolete|attic)/|[(\[_ .-](?:old|obsolete|superseded|"
    r"deprecated|alt|veraltet)[)\]]?\.[^./]+$",
    re.IGNORECASE,
)
_ASKS_PAST = re.compile(
    r"\b(?:19|20)\d\d\b|\b(?:was|were|did|used to|previous(?:ly)?|former(?:ly)?|earlier|before|old|history|"
    r"changed?|until|back then|past|archived?|superseded|war|waren|früher|ehemals|bisher|alte[nrs]?|vorher|"
    r"geändert|était|avant|ancien(?:ne)?|era|antes|anterior)\b",
    re.IGNORECASE,
)
_ASKS_NOW = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|today|latest|newest|present(?:ly)?|still|valid|in force|these days|"
    r"aktuell\w*|derzeit\w*|jetzt|heute|momentan|gilt|gültig\w*|neueste\w*|actuel\w*|maintenant|"
    r"aujourd['’]hui|dernière?|actual\w*|ahora|hoy|vigente\w*|último|última)\b",
    re.IGNORECASE,
)


def adjusted(
    scores: Mapping[int, float], passages: Sequence[Passage], question: str, options: SearchSettings
) -> dict[int, float]:
    """Return the fused scores with what is out of date put back.

    A question that names a year or the past is left alone. One that asks for the current state also lets
    passages rank by their date, as a third leg that counts as much as a tenth of the first place.
    """
    if not options.prefer_current or _ASKS_PAST.search(question):
        return dict(scores)
    found = dict(scores)
    for passage in passages:
        if is_superseded(passage):
            found[passage.chunk_id] *= BACK
    if _ASKS_NOW.search(question):
        top = max(found.values(), default=0.0)
        dates = sorted({_day(passage) for passage in passages})
        for passage in passages:
            newness = (dates.index(_day(passage)) + 1) / len(dates)
            found[passage.chunk_id] += _NEW_WEIGHT * top * newness
    return found


_NEW_WEIGHT = 0.1


def is_superseded(passage: Passage) -> bool:
    """Whether a note says of itself, or its name says, that another one holds now."""
    name = unicodedata.normalize("NFC", passage.path.decode("utf-8", "replace"))
    return bool(_OLD_STATUS.search(passage.status) or _OLD_NAME.search(name))


def _day(passage: Passage) -> date:
    return passage.written_on or passage.modified_at.date()
