"""Ways to find other members that need files or look-ups."""
