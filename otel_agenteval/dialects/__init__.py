"""How instrumentations write GenAI facts: one small module per dialect, each filling the same :class:`~.step.Step`."""
