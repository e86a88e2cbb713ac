"""Searches in copies of this process, when several come at once: one interpreter runs one of them at a time."""
