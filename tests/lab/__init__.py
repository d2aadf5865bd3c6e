"""The fault lab: a simulated provider on the loopback interface, which speaks every vendor's protocol and simulates
every fault.
"""

from tests.lab import odd_answers as odd_answers  # Importing odd_answers registers its scenarios.
from tests.lab.malformed import MALFORMED
from tests.lab.scenarios import SCENARIOS, Scenario
from tests.lab.server import Lab, Received

__all__ = ["MALFORMED", "SCENARIOS", "Lab", "Received", "Scenario"]
