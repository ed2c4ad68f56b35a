"""How a history is judged: summed up by view and sender, walked, explained."""
