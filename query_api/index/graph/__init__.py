"""The graph in memory: flat columns, immutable segments, the view over them; it never reads a file and never ranks."""
