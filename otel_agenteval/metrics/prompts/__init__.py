"""Texts of judge prompts, with one module per family of metrics.
:mod:`..lib.prompts` assembles them.
"""
