"""What callers save: one store for all kinds of it."""
