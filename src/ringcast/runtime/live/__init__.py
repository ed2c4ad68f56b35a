"""The live view: one member watches the whole group, and shows it in a terminal or a browser."""
