"""Measuring: how well passages are found and refusals made, on questions whose passages are known."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from answerer.answer_figures import Judged, judge, precision
from answerer.door import Tell, Wish
from notewarden.errors import UsageError

DEPTH = 10
NEAR = 5


@dataclass(frozen=True)
class Case:
    """One question: `gold` holds the passages that answer it; `as_user` None is whoever asks.

    `never` are texts that may stand in no answer: those of hidden notes, or what a planted note wants said.
    """

    id: str
    question: str
    as_user: str | None
    answerable: bool
    gold: tuple[Mapping[str, Any], ...]
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figures:
    """Figures of a set of questions; those of search count the answerable ones with gold only."""

    questions: int
    measured: int
    recall_at_5: float
    recall_at_10: float
    hit_at_5: float
    mrr_at_10: float
    answerable: int
    answerable_refused: int
    unanswerable: int
    unanswerable_refused: int
    ndcg_at_10: float = 0.0
    refusal_precision: float = 0.0  # which part of all refusals were right; 1 where there were none
    citation_precision: float = 1.0  # which part of all cited claims their lines hold
    claims: int = 0
    uncited: int = 0
    leaks: int = 0
    judged: int = 0  # answers that a model judged; of these:
    judged_supported: int = 0  # the quotes bear out all that is said
    judged_answering: int = 0  # it says what was asked for


def read_questions(file: Path) -> list[Case]:
    """Return the questions of a JSONL file. Raises UsageError naming the line that does not fit."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    return [_case(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def read_baseline(file: Path) -> dict[str, Any]:
    """Return the figures that an earlier run printed as JSON. Raises UsageError."""
    try:
        return dict(json.loads(file.read_text("utf-8"))["all"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{file} holds no earlier figures; make them with `ask eval FILE --json`."
        ) from error


def evaluate(cases: Sequence[Case], tell: Tell, *, judged: bool = False) -> dict[str, Figures]:
    """Ask every question through `tell`; returns the figures of "all" and, by name, of each `as`.

    With `judged` a model judges each answer whose text may leave this machine.
    """
    outcomes = [(case, _outcome(case, tell, judged=judged)) for case in cases]
    figures = {"all": _figures(outcomes)}
    for name in sorted({case.as_user for case in cases if case.as_user}):
        figures[f"as {name}"] = _figures([pair for pair in outcomes if pair[0].as_user == name])
    return figures


def as_json(figures: Mapping[str, Figures]) -> str:
    """Return the figures as JSON: those of all under "all"."""
    return json.dumps({name: asdict(one) for name, one in figures.items()}, indent=2)


def as_text(figures: Mapping[str, Figures]) -> str:
    """Return the figures as a table, one line for each set."""
    rows = [
        f"{'':24} {'n':>4} {'rec@5':>6} {'rec@10':>6} {'hit@5':>6} {'MRR@10':>6} {'nDCG@10':>7}"
        "  refused: unanswerable/answerable, precision; citations: precision, uncited, leaks"
    ]
    for name, one in figures.items():
        rows.append(
            f"{name:24} {one.questions:4} {one.recall_at_5:6.3f} {one.recall_at_10:6.3f} {one.hit_at_5:6.3f} "
            f"{one.mrr_at_10:6.3f} {one.ndcg_at_10:7.3f}  {one.unanswerable_refused}/{one.unanswerable} "
            f"{one.answerable_refused}/{one.answerable} {one.refusal_precision:.2f}; "
            f"{one.citation_precision:.3f} of {one.claims}, {one.uncited}, {one.leaks}"
        )
        if one.judged:
            rows.append(
                f"{'':24} a model judged {one.judged} answers: {one.judged_supported} borne out by "
                f"their quotes, {one.judged_answering} to the question"
            )
    return "\n".join(rows)


def worse(figures: Mapping[str, Figures], earlier: Mapping[str, Any]) -> list[str]:
    """Return the names of the figures that are worse than those of an earlier run."""
    now = asdict(figures["all"])
    higher = (
        "recall_at_5", "recall_at_10", "hit_at_5", "mrr_at_10", "ndcg_at_10", "unanswerable_refused",
        "citation_precision",
    )  # fmt: skip
    fallen = [name for name in higher if now[name] < earlier.get(name, 0) - 1e-9]
    lower = ("answerable_refused", "leaks")
    return [*fallen, *(name for name in lower if now[name] > earlier.get(name, now[name]))]


def is_hit(row: Mapping[str, Any], gold: Mapping[str, Any]) -> bool:
    """Whether a passage is the one meant: its path, and heading in its trail, overlapping lines, or text."""
    if gold.get("share", row["share"]) != row["share"] or _same(row["path"]) != _same(gold["path"]):
        return False
    if "heading" in gold:
        return _same(gold["heading"]) in map(_same, row["heading"])
    if "lines" in gold:
        first, last = gold["lines"]
        return bool(row["first_line"] <= last and first <= row["last_line"])
    return _same(gold["text"]) in _same(row["text"])


@dataclass(frozen=True)
class _Outcome:
    recall_at_5: float
    recall_at_10: float
    first: int  # place of the first hit, 0 for none
    ndcg_at_10: float
    refused: bool
    judged: Judged
    verdict: tuple[bool, bool, bool] = (False, False, False)  # judged at all, supported, answers


def _outcome(case: Case, tell: Tell, *, judged: bool) -> _Outcome:
    who = {"as": case.as_user} if case.as_user else {}
    rows = tell(Wish("search", {"words": case.question, "k": DEPTH, **who})).body["results"]
    body = tell(Wish("judge" if judged else "ask", {"question": case.question, "k": 8, **who})).body
    answer = body["answer"] if judged else body
    places = [next((n for n, row in enumerate(rows, 1) if is_hit(row, gold)), 0) for gold in case.gold]
    hit = [place for place in places if place]
    total = len(case.gold) or 1
    return _Outcome(
        recall_at_5=sum(place <= NEAR for place in hit) / total,
        recall_at_10=len(hit) / total,
        first=min(hit, default=0),
        ndcg_at_10=_ndcg(hit, total),
        refused=not answer["found"],
        judged=judge(answer, case.never),
        verdict=(body["judged"], body["supported"], body["answers"]) if judged else (False, False, False),
    )


def _ndcg(places: Sequence[int], total: int) -> float:
    """Return nDCG: each gold passage gains 1, discounted by log2 of its place + 1 (Järvelin 2002)."""
    best = sum(1 / math.log2(place + 1) for place in range(1, min(total, DEPTH) + 1))
    return min(sum(1 / math.log2(place + 1) for place in places) / best, 1.0)


def _figures(outcomes: Sequence[tuple[Case, _Outcome]]) -> Figures:
    measured = [outcome for case, outcome in outcomes if case.answerable and case.gold]
    answerable = [outcome for case, outcome in outcomes if case.answerable]
    others = [outcome for case, outcome in outcomes if not case.answerable]
    return Figures(
        questions=len(outcomes),
        measured=len(measured),
        recall_at_5=_mean([one.recall_at_5 for one in measured]),
        recall_at_10=_mean([one.recall_at_10 for one in measured]),
        hit_at_5=_mean([float(0 < one.first <= NEAR) for one in measured]),
        mrr_at_10=_mean([1 / one.first if one.first else 0.0 for one in measured]),
        answerable=len(answerable),
        answerable_refused=sum(one.refused for one in answerable),
        unanswerable=len(others),
        unanswerable_refused=sum(one.refused for one in others),
        ndcg_at_10=_mean([one.ndcg_at_10 for one in measured]),
        refusal_precision=_mean(
            [float(not case.answerable) for case, one in outcomes if one.refused] or [1.0]
        ),
        citation_precision=precision([one.judged for _, one in outcomes]),
        claims=sum(one.judged.claims for _, one in outcomes),
        uncited=sum(one.judged.uncited for _, one in outcomes),
        leaks=sum(one.judged.leaks for _, one in outcomes),
        judged=sum(one.verdict[0] for _, one in outcomes),
        judged_supported=sum(one.verdict[1] for _, one in outcomes),
        judged_answering=sum(one.verdict[2] for _, one in outcomes),
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _same(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _case(file: Path, number: int, line: str) -> Case:
    try:
        found = json.loads(line)
        gold = tuple(found.get("gold", ()))
        for one in gold:
            _require_place(one)
        return Case(
            str(found["id"]),
            str(found["question"]),
            found.get("as"),
            bool(found.get("answerable", True)),
            gold,
            tuple(map(str, found.get("never", ()))),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{file}, line {number} is not a question in the documented form: {error}."
        ) from error


def _require_place(gold: Mapping[str, Any]) -> None:
    if not isinstance(gold["path"], str) or not {"heading", "lines", "text"} & gold.keys():
        raise ValueError("a gold passage needs path, and heading, lines or text")
    if "lines" in gold:
        first, last = gold["lines"]
        if not isinstance(first, int) or not isinstance(last, int):
            raise ValueError("lines must be two numbers")
