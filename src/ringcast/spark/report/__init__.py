"""Pages with plots, in one file each, that open without a network."""
