"""Reports of a run as JSON lines, tables, JUnit XML, Markdown or a web page, with an optional comparison to a baseline.

May import :mod:`~otel_agenteval.statistics`, :mod:`~otel_agenteval.metrics` and the rooms that read turns. Allowed third-party
package: numpy.
Start at :mod:`.outputs`.

run          the scores of one run, and their parser
compare      comparison of two runs, metric by metric
formatting   numbers and sentences shared by all reports
junit, markdown, html, table   one format each
outputs      selection of formats and their files
experiment   summary of the trials of an experiment
calibration  comparison of human labels with a run's scores
frames       turns and scores for notebooks
"""

from .compare import compare
from .formatting import Report
from .outputs import FORMATS, Rendering, open_outputs
from .run import About, Run, line_of, parameters_hash

__all__ = ["FORMATS", "About", "Rendering", "Report", "Run", "compare", "line_of", "open_outputs", "parameters_hash"]
