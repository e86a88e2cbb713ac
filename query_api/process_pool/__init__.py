"""Searches in worker processes, when several come at once: one interpreter runs one of them at a time."""
