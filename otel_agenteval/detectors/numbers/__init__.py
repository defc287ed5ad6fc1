"""Find numbers in an answer that don't have a source in the texts given to the agent."""
