"""The checks of ``otel-agenteval doctor``: each module returns findings about one possible cause of missing scores."""
