"""Whether the configured models are there, for `notewarden doctor`: the provider is asked, nothing is spent.

`doctor` comes here through the entry point group ``notewarden.model_check``; the two sides import nothing of
each other, so a finding is a plain tuple.
"""

from __future__ import annotations

from collections.abc import Iterator

from answerer.model import AboutModel, Claude, ModelUnknown
from notewarden.errors import ProviderFailed
from notewarden.settings import Settings
from notewarden.settings_sections import AnswerSettings

Finding = tuple[str, bool, str, str]
"""The configuration's key, whether it is right, what was found, and what to do."""

_REACH = "Check [answer] base_url and whether this machine, or its service, may go there."
_LATER = "Try again later; until then questions are answered as [answer] fallback says."


def check_models(settings: Settings) -> list[Finding]:
    """Ask for each model of `[answer]`; none where no provider is set. Raises ConfigError without a key."""
    answer = settings.answer
    if answer.provider != "anthropic":
        return []
    claude = Claude(answer)
    named = {
        "model": answer.model,
        "small_model": answer.small_model,
        "fallback_model": answer.fallback_model,
    }
    return [_look(claude, answer, key, name) for key, name in named.items() if name]


def _look(claude: Claude, answer: AnswerSettings, key: str, name: str) -> Finding:
    try:
        about = claude.about(name)
    except ModelUnknown as error:
        return key, False, str(error), f"Correct [answer] {key}: an id of the provider's own list of models."
    except ProviderFailed as error:
        what, _, remedy = str(error).rstrip(".").partition("; ")
        return key, False, f"{name}: {what}.", f"{remedy[:1].upper()}{remedy[1:]}." if remedy else _by(what)
    if about is None:
        return (
            key,
            True,
            f"{name}: this server does not tell which models it has.",
            "Ask it a question to try.",
        )
    return _judged(key, name, about, list(_misfits(answer, about)))


def _by(what: str) -> str:
    return _LATER if "HTTP status" in what else _REACH


def _judged(key: str, name: str, about: AboutModel, misfits: list[str]) -> Finding:
    detail = _described(name, about)
    if about.lifecycle == "retired":
        return key, False, detail, f"Set another [answer] {key}: questions to this one fail."
    if misfits:
        return key, False, detail, " ".join(misfits)
    if about.lifecycle == "deprecated":
        by = f" before {about.retires:%Y-%m-%d}" if about.retires else " before it is retired"
        return key, True, detail, f"Set another [answer] {key}{by}."
    return key, True, detail, ""


def _described(name: str, about: AboutModel) -> str:
    told = [about.name] if about.name not in ("", name) else []
    told += [about.lifecycle] if about.lifecycle else []
    told += [f"takes {about.most_input:,} tokens"] if about.most_input else []
    told += [f"writes {about.most_output:,}"] if about.most_output else []
    return f"{name}: {', '.join(told) or 'the provider has it'}; nothing was spent."


def _misfits(answer: AnswerSettings, about: AboutModel) -> Iterator[str]:
    if about.most_output is not None and answer.max_tokens > about.most_output:
        yield f"Lower [answer] max_tokens to {about.most_output} at the most."
    if answer.mode == "auto" and about.most_input is not None and answer.whole_limit > about.most_input:
        yield f"Lower [answer] whole_limit below {about.most_input}."
