"""Helpers that several metric families share.

The helpers parse JSON, code, SQL, and XML, and read a turn's agents, steps, tool calls, and media.
"""
