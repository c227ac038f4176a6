"""What a model writes of a day is compared with the day's messages; what no message holds is cut.

grounded(summary, turns, zone, "auto")  # Grounded(summary, cut)
"""

from streams.summaries.grounding.checking import Grounded, grounded
from streams.summaries.grounding.spoken_day import Fault

__all__ = ["Fault", "Grounded", "grounded"]
