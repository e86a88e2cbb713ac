"""The commands of the query service."""
