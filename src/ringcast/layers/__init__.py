"""The data path: one protocol a file, each a layer of the ladder that batches climb."""
