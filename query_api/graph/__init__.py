"""Rooms of the graph view: flat columns, the immutable segment built from them, and its strings and ids."""
