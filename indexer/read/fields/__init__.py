"""What documents say of themselves (ids, titles, dates, metadata), read as values that can be compared and found."""
