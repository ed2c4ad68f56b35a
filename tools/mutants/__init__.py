"""Mutation testing: breaks the code in small ways, one at a time, and sees whether a test fails."""
