"""The reports of a run: JSON lines, tables, JUnit XML, Markdown or a web page, with or without a comparison to a baseline.

May import :mod:`~otel_agenteval.statistics`, :mod:`~otel_agenteval.metrics` and what turns are read by; of third parties, numpy.
Start at :mod:`.outputs`.

run         the scores of one run, and how they are read back
compare     two runs, metric by metric
formatting  numbers and sentences that all reports have
junit, markdown, html, text    one format each
outputs     which formats are written, and to which files
experiment  trials of cases, summed up
calibration labels of people beside the scores of a run
frames      turns and scores for notebooks
"""

from .compare import compare
from .formatting import Report
from .outputs import FORMATS, Rendering, open_outputs
from .run import About, Run, line_of, parameters_hash

__all__ = ["FORMATS", "About", "Rendering", "Report", "Run", "compare", "line_of", "open_outputs", "parameters_hash"]
