"""Plan a request, prepare it for each candidate, and send it. Simulations use the same code.

In this package, a *reader* (`capabilities.core.delivery.reader`) describes what a candidate's model can read. Adapting
a request means converting or describing those files that the reader does not accept unchanged.
"""
