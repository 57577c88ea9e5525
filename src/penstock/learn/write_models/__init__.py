"""What a write costs: write paths as data, features, models and advice (paper write-models)."""
