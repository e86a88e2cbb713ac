"""Answers that a language model writes from the first hits, as far as sentences of these hits support what it says."""
