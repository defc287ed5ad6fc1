"""Spans from Kafka, for as many workers as its topic has partitions."""
