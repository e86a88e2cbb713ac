"""The ways to find passages: by vector, by words, by the graph, each over one snapshot; they never fuse."""
