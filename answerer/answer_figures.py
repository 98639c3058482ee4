"""Measuring answers: whether the cited lines hold what is said, and whether one says what never may be."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from answerer.claims import is_held, says_something

_MARKED = re.compile(r"(?P<claim>.*?)(?P<marks>(?:\s*\[(?:\d{1,4}|\?)\])+)", re.S)
_NUMBER = re.compile(r"\[(\d{1,4})\]")
_LEAST = 0.5  # of a claim's content words, which its lines must hold


@dataclass(frozen=True)
class Judged:
    """One answer: its cited claims, how many of them their lines hold, sentences without one, leaks."""

    claims: int = 0
    held: int = 0
    uncited: int = 0
    leaks: int = 0


def judge(answer: Mapping[str, Any], never: Sequence[str]) -> Judged:
    """Return what the JSON of an answer is worth; `never` are texts that may stand nowhere in it."""
    quotes = {one["n"]: _evidence(one) for one in answer["citations"]}
    claims = held = uncited = 0
    for match in _MARKED.finditer(answer["answer"]):
        if not says_something(match["claim"]):
            continue
        cited = [int(number) for number in _NUMBER.findall(match["marks"])]
        evidence = "\n".join(quotes.get(number, "") for number in cited)
        claims += bool(cited)
        held += bool(cited) and is_held(match["claim"], evidence, _LEAST)
        uncited += not cited
    said = _same(" ".join([answer["answer"], *(one["quote"] for one in answer["citations"])]))
    return Judged(claims, held, uncited, sum(_same(text) in said for text in never))


def _evidence(citation: Mapping[str, Any]) -> str:
    return f"{' '.join(citation['heading'])} {citation['path']}\n{citation['quote']}"


def precision(judged: Sequence[Judged]) -> float:
    """Return which part of all cited claims their lines hold; 1 where nothing was claimed."""
    claims = sum(one.claims for one in judged)
    return round(sum(one.held for one in judged) / claims, 4) if claims else 1.0


def _same(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
