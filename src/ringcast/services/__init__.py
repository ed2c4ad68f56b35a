"""What members do for each other above their messages: answer calls, and hand over states."""
