"""Find numbers in an answer that have no source in the texts given to the agent."""
