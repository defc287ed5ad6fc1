"""Entry point of ``python -m otel_agenteval``, which is the command ``otel-agenteval``."""

from __future__ import annotations

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
