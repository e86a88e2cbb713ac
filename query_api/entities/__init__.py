"""Entities: listed, found, described, and the paths between them."""
