"""What a segment is made of: columns of numbers, texts and edges, each in few bytes and read by position."""
