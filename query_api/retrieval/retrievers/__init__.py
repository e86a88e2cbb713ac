"""What finds passages: by vectors, by words, by fields, over the graph."""
