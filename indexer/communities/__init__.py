"""Communities of entities: the graph that they are found in, partitions, titles and summaries."""
