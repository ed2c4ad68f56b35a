"""`ringcast bench net`: groups on a bridge with an Ethernet MTU, with loss and narrow links."""
