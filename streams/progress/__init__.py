"""How far the work has come, and patience with what it waits for; it never skips a record."""
