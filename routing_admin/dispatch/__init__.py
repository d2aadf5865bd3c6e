"""Plan a request, prepare it for each candidate, and send it; simulations use the same code.

The dispatch code calls a description of what a candidate's model can read a reader
(`capabilities.core.delivery.reader`). Adapting a request means converting or describing the files that the reader does
not accept unchanged.
"""
