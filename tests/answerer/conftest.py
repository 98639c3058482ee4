"""The house that these tests ask in; here its fixtures hide others of the same name."""

from support.answer_house import build_house, house, standing_house

__all__ = ["build_house", "house", "standing_house"]
