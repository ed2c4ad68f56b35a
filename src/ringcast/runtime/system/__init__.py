"""What differs between operating systems: each with the best that this one has."""
