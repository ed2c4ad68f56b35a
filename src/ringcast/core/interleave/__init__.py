"""The checker that runs every interleaving of the RingBuffer's steps, and the story it tells."""

from ringcast.core.interleave.checker import Ending, Message, Scenario, Verdict, explore, replay
from ringcast.core.interleave.story import main, show

__all__ = ["Ending", "Message", "Scenario", "Verdict", "explore", "main", "replay", "show"]
