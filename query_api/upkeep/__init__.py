"""Keeping up with the stores and the log: snapshots, topics followed, lag; it never searches and never writes."""
