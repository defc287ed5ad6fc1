"""What ``otel-agenteval doctor`` looks at: each module gives findings about one place where scores can get lost."""
