"""Find numbers in an answer that aren't supported by the texts that the agent received."""
