"""The token measure: the shipped vocabulary, its spans, and texts that break others."""

from __future__ import annotations

import hashlib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewarden.wordpiece import VOCABULARY_SHA256, count_tokens, token_spans, tokenizer


def test_the_vocabulary_is_the_one_the_model_was_trained_with() -> None:
    raw = resources.files("notewarden").joinpath("data/wordpiece-vocabulary.txt").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == VOCABULARY_SHA256
    assert tokenizer().get_vocab_size() == 30_522


def test_texts_are_cut_as_uncased_bert_cuts_them() -> None:
    found = tokenizer().encode("Hello Wörld, how's unaffable")
    assert found.tokens == ["[CLS]", "hello", "world", ",", "how", "'", "s", "una", "##ffa", "##ble", "[SEP]"]
    assert found.ids[0] == 101
    assert found.ids[-1] == 102


def test_special_names_in_a_note_are_plain_text() -> None:
    assert 101 not in tokenizer().encode("[CLS] and [SEP]", add_special_tokens=False).ids


def test_nothing_is_cut_off_or_padded() -> None:
    assert count_tokens("word " * 5_000) == 5_000
    assert count_tokens("") == 0


def test_spans_are_of_the_text_as_it_was_given() -> None:
    text = "Grüße an Jürgen"
    assert "".join(text[start:end] for start, end in token_spans(text)) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["a\ud800b", "\x00\x00", "\udcff", "🙂🙂", "\u0301", " \t\r\n"])
def test_odd_texts_are_measured_too(text: str) -> None:
    assert count_tokens(text) == len(token_spans(text))


@given(st.text(st.characters(codec=None), max_size=200))
def test_spans_rise_and_stay_inside(text: str) -> None:
    spans = token_spans(text)
    assert len(spans) == count_tokens(text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
