"""Answers by a model."""

from __future__ import annotations

from support.model_house import model_house

__all__ = ["model_house"]
