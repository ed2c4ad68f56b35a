"""The group as applications use it, asynchronous and blocking."""
