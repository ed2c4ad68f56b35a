"""Reliable multicast: a common base, NAKACK4 (windows and acks), NAKACK3 (a table, stability)."""
