"""Datasets, features and tasks in the formats of other tools: FiftyOne, Embedding Atlas, torch."""
