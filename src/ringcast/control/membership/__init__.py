"""Membership: which members are in the group. Joiner, participant, coordinator, leaver and merging
are components of one part; `transitions` says which of them handles what in which state."""
