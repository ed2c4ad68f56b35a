"""The swarm: random stacks, networks and faults from a seed."""
