"""Run the command ``otel-agenteval`` with ``python -m otel_agenteval``."""

from __future__ import annotations

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
