"""`notewarden doctor`: what can be wrong before anything is indexed or answered, each with its remedy."""

from indexer.doctor.report import Check, as_json, as_text
from indexer.doctor.run import examine

__all__ = ["Check", "as_json", "as_text", "examine"]
