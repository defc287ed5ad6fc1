"""Spans in: one light record, whatever door a span came through."""
