"""Further ways through the graph than one bounded hop: expanding around a few seeds, and a personalised PageRank."""
