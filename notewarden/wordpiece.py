"""The shipped WordPiece vocabulary: it feeds the local model and measures chunks under every provider."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from notewarden.errors import ConfigError

VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def tokenizer() -> Tokenizer:
    """Return the BERT uncased tokenizer, with the [CLS] … [SEP] template, neither truncating nor padding.

    Raises ConfigError if the vocabulary file is not the one this version ships.
    """
    vocabulary = _load_vocabulary()
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return made


def count_tokens(text: str) -> int:
    """Return how many tokens `text` has, without [CLS] and [SEP]."""
    return len(tokenizer().encode(encodable(text), add_special_tokens=False))


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return the half-open character range in `text` of each token, in order, without [CLS] and [SEP]."""
    return list(tokenizer().encode(encodable(text), add_special_tokens=False).offsets)


def encodable(text: str) -> str:
    """Return `text` with lone surrogates, which UTF-8 cannot carry, replaced one for one by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def _load_vocabulary() -> dict[str, int]:
    raw = resources.files("notewarden").joinpath("data/wordpiece-vocabulary.txt").read_bytes()
    if hashlib.sha256(raw).hexdigest() != VOCABULARY_SHA256:
        raise ConfigError(
            "The file notewarden/data/wordpiece-vocabulary.txt is not the one this version ships; "
            "install notewarden again."
        )
    return {token: number for number, token in enumerate(raw.decode("utf-8").removesuffix("\n").split("\n"))}
