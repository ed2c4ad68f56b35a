"""The control parts: which members there are, which are alive, what is stable."""
