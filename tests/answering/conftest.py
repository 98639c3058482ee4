"""Answers by a model."""

from __future__ import annotations

from support.model_house import asked, model_house, standing_model_house

__all__ = ["asked", "model_house", "standing_model_house"]
