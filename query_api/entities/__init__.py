"""Entities as people see them: listed, found, described, and the paths between them."""
