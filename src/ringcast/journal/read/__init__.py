"""Reading a journal: segments, plans without duplicates, streams."""
