"""Answers made of what a search found: sentences of its hits, word for word, each with its source."""
