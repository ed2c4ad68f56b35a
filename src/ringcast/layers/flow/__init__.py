"""Flow control by credits (SFC)."""
