"""What a question in a conversation means: a new one, a follow-up, or a wish about the last answer."""

from __future__ import annotations

import re
from typing import Literal

Meaning = Literal["new", "follow-up", "repeat", "rework"]

_REPEAT = re.compile(
    r"^\W*(?:(?:can|could|would|will) you |please |kannst du |könntest du |bitte |sorry,? ?|pardon,? ?)*"
    r"(?:(?:repeat|say|show)(?: me)? (?:that|this|it|the (?:last )?answer)(?: again| once more| please)*"
    r"|repeat|say again|again|once more|come again|what did you (?:just )?say|what was that(?: again)?"
    r"|(?:das )?(?:noch (?:ein)?mal|wiederhol(?:e|en)(?: das)?|nochmals)(?: (?:sagen|wiederholen|bitte))*"
    r"|was hast du gesagt)(?: please| bitte| for me)?\W*$",
    re.I,
)
_REWORK = re.compile(
    r"^\W*(?:(?:can|could|would) you |please |kannst du |bitte |now )*(?:summari[sz]e|shorten|translate|"
    r"rephrase|reword|simplify|explain|put|make|give|write|say|fasse|übersetze|erkläre|kürze)\b.{0,40}"
    r"\b(?:that|this|it|das|es|the (?:last |above )?answer)\b"
    r"|^\W*(?:shorter|simpler|in (?:one|two|a) (?:sentence|words?|line)s?"
    r"|in (?:english|german|french|spanish)"
    r"|kürzer|einfacher|auf (?:deutsch|englisch)|in einem satz)(?: please| bitte)?\W*$",
    re.I,
)
_POINTING = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|their|there|then|he|she|him|her|his|one|ones|same|former|latter|"
    r"es|das|dies|diese[rsmn]?|dort|dann|davon|dafür|damit|dazu|darin|sie|ihn|ihm|ihre?[rsnm]?|deren|dessen)\b",
    re.I,
)
_GOES_ON = re.compile(
    r"^\W*(?:and|but|or|so|also|what about|how about|what if|why|why not|since when|"
    r"for (?:how long|whom|what)|"
    r"und|aber|oder|auch|was ist mit|wie ist es mit|warum|seit wann|wieso)\b",
    re.I,
)
_WORD = re.compile(r"\w+")
_FEW = 3
_SHORT = 8


def meaning(question: str) -> Meaning:
    """Return what `question` means right after another; a guess that errs towards searching."""
    if _REPEAT.match(question):
        return "repeat"
    if _REWORK.search(question):
        return "rework"
    words = len(_WORD.findall(question))
    if words <= _FEW or _GOES_ON.match(question) or (words <= 2 * _SHORT and _POINTING.search(question)):
        return "follow-up"
    return "new"


def joined(previous: str, question: str) -> str:
    """Return what to search for: the question with the one that it goes on from."""
    return f"{previous.strip()} {question.strip()}"
