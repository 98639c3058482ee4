"""`notewarden doctor` and the models of `[answer]`: whether the provider has them, for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.command import Site
from support.fake_claude import Failure, FakeClaude, fake_claude

from indexer.doctor import examine
from indexer.doctor.report import Check


@pytest.fixture
def fake() -> Iterator[FakeClaude]:
    with fake_claude() as fake:
        fake.models = {"claude-big": {}}
        yield fake


def looked(site: Site, url: str, **answer: Any) -> dict[str, Check]:
    site.configure(answer={"provider": "anthropic", "base_url": url, "model": "claude-big", **answer})
    return {check.name: check for check in examine(site.config) if check.name.startswith("answer ")}


def test_the_installed_command_asks_for_each_model_once_and_spends_nothing(
    site: Site, fake: FakeClaude
) -> None:
    fake.models = {"claude-big": {"max_input_tokens": 1_000_000, "max_tokens": 64_000}, "claude-small": {}}
    models = {"provider": "anthropic", "base_url": fake.url, "model": "claude-big"}
    site.configure(answer={**models, "small_model": "claude-small"})
    checks = {check["name"]: check for check in site.run("doctor", "--json").json["checks"]}
    assert [checks[f"answer {key}"]["ok"] for key in ("model", "small_model")] == [True, True]
    detail = "claude-big: Claude-Big, active, takes 1,000,000 tokens, writes 64,000; nothing was spent."
    assert checks["answer model"]["detail"] == detail
    assert [request.path for request in fake.requests] == ["/v1/models/claude-big", "/v1/models/claude-small"]


def test_without_a_provider_nobody_is_asked(site: Site, fake: FakeClaude) -> None:
    assert looked(site, fake.url, provider="extracts") == {}
    assert fake.requests == []


def test_a_model_that_the_provider_does_not_know_is_named_with_its_key(site: Site, fake: FakeClaude) -> None:
    found = looked(site, fake.url, fallback_model="claude-typo")
    assert found["answer model"].ok
    wrong = found["answer fallback_model"]
    assert (wrong.ok, wrong.detail) == (False, "The model provider does not know 'claude-typo'.")
    assert "Correct [answer] fallback_model" in wrong.remedy


@pytest.mark.parametrize(
    ("told", "more", "ok", "remedy"),
    [
        ({"lifecycle": "retired"}, {}, False, "Set another [answer] model: questions to this one fail."),
        (
            {"lifecycle": "deprecated", "retires_at": "2031-02-03T00:00:00Z"},
            {},
            True,
            "Set another [answer] model before 2031-02-03.",
        ),
        ({"lifecycle": "deprecated"}, {}, True, "Set another [answer] model before it is retired."),
        ({"max_tokens": 1_000}, {}, False, "Lower [answer] max_tokens to 1000 at the most."),
        ({"max_input_tokens": 99_000}, {}, True, ""),
        ({"max_input_tokens": 99_000}, {"mode": "auto"}, False, "Lower [answer] whole_limit below 99000."),
        (Failure(401), {}, False, "Check [answer] api_key_file."),
        (Failure(403), {}, False, "Check [answer] api_key_file."),
        (Failure(400), {}, False, "Try again later"),
    ],
)
def test_what_is_told_of_a_model_is_judged(
    site: Site, fake: FakeClaude, told: Any, more: dict[str, Any], ok: bool, remedy: str
) -> None:
    fake.models = {"claude-big": told}
    check = looked(site, fake.url, **more)["answer model"]
    assert check.ok is ok
    assert check.remedy.startswith(remedy)
    assert bool(check.remedy) is bool(remedy)
    assert check.detail.startswith("claude-big: ")


def test_a_server_that_cannot_tell_is_not_called_wrong(site: Site, fake: FakeClaude) -> None:
    fake.models = None
    check = looked(site, fake.url)["answer model"]
    assert check.ok
    assert "does not tell" in check.detail


def test_a_provider_that_cannot_be_reached_is_told_with_where_to_look(site: Site) -> None:
    check = looked(site, "http://127.0.0.1:9")["answer model"]
    assert (check.ok, check.detail) == (False, "claude-big: The model provider cannot be reached.")
    assert "base_url" in check.remedy


def test_a_key_that_is_missing_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    site.configure(answer={"provider": "anthropic"})
    (check,) = [check for check in examine(site.config) if check.name == "answer model"]
    assert not check.ok
    assert "api_key_file" in check.remedy
