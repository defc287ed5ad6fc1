"""Find the numbers in an answer that don't follow from the texts that the agent was given."""
