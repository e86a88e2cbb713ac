"""The ways to find passages: by vector, by words, by the graph. Each is a few pure steps over one snapshot."""
