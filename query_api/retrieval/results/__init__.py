"""From an order to hits: their texts and snippets, paths through the graph, the factors of an explanation."""
