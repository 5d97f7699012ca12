"""The shop's tables as they came to be."""
