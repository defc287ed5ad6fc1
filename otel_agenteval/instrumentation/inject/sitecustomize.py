"""Start the recorder in each Python process that ``otel-agenteval record`` runs.

Python imports only the first ``sitecustomize`` in ``sys.path``. If another ``sitecustomize`` follows, this module runs it, too.
"""

import sys
from pathlib import Path


def _run_the_other() -> None:
    import importlib.util
    from importlib.machinery import PathFinder

    here = Path(__file__).resolve().parent
    spec = PathFinder.find_spec("sitecustomize", [one for one in sys.path if Path(one).resolve() != here])
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def _begin() -> None:
    try:
        from otel_agenteval.instrumentation.recorder import begin
    except ImportError as error:  # another environment's Python
        sys.stderr.write(f"otel-agenteval: can't record {sys.executable}: {error}; install otel-agenteval in its environment\n")
    else:
        begin()


try:
    _run_the_other()
finally:
    _begin()
