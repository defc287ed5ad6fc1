"""What ``otel-agenteval eval`` says of a run: as JSON lines, tables, JUnit XML, Markdown or a page, alone or against a baseline.

May import :mod:`~otel_agenteval.statistics`, :mod:`~otel_agenteval.metrics` and what turns are read by; of others numpy.
Start at :mod:`.outputs`.

run         the scores of one run, and reading them back
compare     two runs, metric by metric
formatting  what all reports say alike
junit, markdown, html, text    one format each
outputs     formats and the files that they go to
"""

from .compare import compare
from .formatting import Report
from .outputs import FORMATS, open_outputs
from .run import About, Run, line_of, parameters_hash

__all__ = ["FORMATS", "About", "Report", "Run", "compare", "line_of", "open_outputs", "parameters_hash"]
