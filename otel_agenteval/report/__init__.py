"""Reports on a run as JSON lines, tables, JUnit XML, Markdown, or a web page, with an optional baseline comparison.

Modules in this package may import :mod:`~otel_agenteval.outlets`, :mod:`~otel_agenteval.turns`, lower layers, numpy, and pandas.
Start reading at :mod:`.outputs`.
"""

from .compare import Comparison, compare
from .formatting import Report, unevaluated_gates
from .outputs import FORMATS, Rendering, formats_of, open_outputs
from .run import About, Run, line_of, parameters_hash

__all__ = [
    "FORMATS", "About", "Comparison", "Rendering", "Report", "Run", "compare", "formats_of", "line_of", "open_outputs",
    "parameters_hash", "unevaluated_gates",
]  # fmt: skip
