"""Keeping up with the log: topics followed, their ends watched, one generation of the stores and its graph."""
