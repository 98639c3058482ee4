"""What a call to a model costs, what may still be spent, and which questions a small model can answer."""

from __future__ import annotations

import re
from decimal import Decimal

from answerer.identity import Asker
from answerer.model import Usage
from db import usage
from db.pool import Connection
from notewarden.errors import LimitReached
from notewarden.settings_sections import AnswerSettings, PriceSettings

_MILLION = Decimal(1_000_000)
_CACHE_WRITE = Decimal("1.25")  # of the price of input tokens
_CACHE_READ = Decimal("0.1")
_MOST_WORDS = 14
_DEEP = re.compile(
    r"\b(?:why|how come|compare|comparison|difference|differ|versus|vs|pros|cons|trade-?offs?|explain|"
    r"summari[sz]e|overview|"
    r"list all|every|all the|steps?|procedure|relationship|best|should (?:we|i)|strategy|both|between|and|or|"
    r"warum|wieso|vergleiche?|unterschiede?|erkläre?|zusammenfass\w*|überblick|alle|schritte?|und|oder|zwischen)\b",
    re.I,
)


def price_of(used: Usage, price: PriceSettings | None) -> Decimal:
    """Return US dollars; 0 for a model without a price. Cache writes cost 1.25, cache reads 0.1 of input."""
    if price is None:
        return Decimal(0)
    read, write = used.cache_read * _CACHE_READ, used.cache_write * _CACHE_WRITE
    into = (used.fresh + read + write) * Decimal(str(price.input))
    return (into + used.output * Decimal(str(price.output))) / _MILLION


def require_budget(conn: Connection, asker: Asker, settings: AnswerSettings) -> None:
    """Raise LimitReached where this day's budget, of the one who asks or of all, is spent.

    Money counts for who really asks, not for whose rights are used.
    """
    if not settings.budget and not settings.budget_per_person:
        return
    person, everybody = usage.spent(conn, asker.actor)
    if settings.budget_per_person and person >= Decimal(str(settings.budget_per_person)):
        raise LimitReached("Your budget for today is spent; `ask search` still works, `ask` again tomorrow.")
    if settings.budget and everybody >= Decimal(str(settings.budget)):
        raise LimitReached("Today's budget is spent; `ask search` still works, `ask` again tomorrow.")


def is_small(question: str, *, in_conversation: bool) -> bool:
    """Whether a small model can be trusted with a question: short, one thing asked, nothing to weigh."""
    short = len(question.split()) <= _MOST_WORDS and question.count("?") <= 1
    return short and not in_conversation and _DEEP.search(question) is None
