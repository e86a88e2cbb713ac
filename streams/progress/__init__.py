"""How far the work has come and what it waits for; this room never does the work."""
