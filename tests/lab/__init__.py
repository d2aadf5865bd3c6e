"""The fault lab: a provider on the loopback interface that speaks every vendor's protocol and plays every fault."""

from tests.lab import odd_answers as odd_answers  # Imported to register its scenarios
from tests.lab.malformed import MALFORMED
from tests.lab.scenarios import SCENARIOS, Scenario
from tests.lab.server import Lab, Received

__all__ = ["MALFORMED", "SCENARIOS", "Lab", "Received", "Scenario"]
