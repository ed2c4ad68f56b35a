"""The vocabulary of a group: addresses, views, batches, ranges, digests, events."""
