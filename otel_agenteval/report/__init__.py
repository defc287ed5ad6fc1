"""What ``otel-agenteval eval`` says of a run: as JSON lines, tables, JUnit XML, Markdown or a page, alone or against a baseline.

run         the scores of one run, and reading them back
statistics  intervals, effect sizes, exact and resampling tests
compare     two runs, metric by metric
words       what all reports say alike
junit, markdown, html, text    one format each
outputs     formats and the files that they go to
"""

from .compare import compare
from .outputs import FORMATS, open_outputs
from .run import About, Run, line_of, parameters_hash
from .words import Report

__all__ = ["FORMATS", "About", "Report", "Run", "compare", "line_of", "open_outputs", "parameters_hash"]
