"""Membership: who is in the group. Joiner, participant and coordinator are roles, each an object of
its own."""
