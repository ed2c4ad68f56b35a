"""The simulated world: virtual time, members, network and faults."""
