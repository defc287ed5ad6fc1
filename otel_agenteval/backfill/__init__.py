"""Scores for traces that were stored before: ``score_batch``, and what drives it over files, a database or a cluster."""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
