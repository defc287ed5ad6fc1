"""Numbers of an answer, and whether they follow from what the agent was given."""
