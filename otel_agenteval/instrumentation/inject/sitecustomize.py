"""What each Python process of ``otel-agenteval record`` begins with: its folder stands first in ``PYTHONPATH``.

Python imports one ``sitecustomize``; another one that the environment has is run as well.
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
        sys.stderr.write(f"otel-agenteval: nothing of {sys.executable} is recorded: {error}\n")
    else:
        begin()


try:
    _run_the_other()
finally:
    _begin()
