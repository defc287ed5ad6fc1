"""Shared helpers for metrics. They parse JSON, code, SQL, and XML, and read a turn's agents, steps, tool calls, and media."""
