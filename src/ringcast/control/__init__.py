"""The control parts: who is in the group, who is alive, what is stable."""
