"""What searches compare, held in memory and kept up with the tables: postings of passages, vectors of chunks.

Nothing here is stored or written; every state is immutable, and a newer one shares what did not change.
"""
