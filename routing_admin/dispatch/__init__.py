"""Plan a request, prepare it for each candidate, and send it; simulations use the same code.

A reader (`capabilities.core.delivery.reader`) describes what a candidate's model can read. Adapting a request means
converting or describing the files that the reader does not accept unchanged.
"""
