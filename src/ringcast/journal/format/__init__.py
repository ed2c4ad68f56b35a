"""What a journal looks like on disk: names, log records, manifests, tables."""
