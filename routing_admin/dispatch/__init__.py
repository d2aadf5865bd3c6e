"""Plan a request, prepare it for each candidate, and send it; simulations share the same code.

A reader (`capabilities.core.delivery.reader`) says what a candidate's model can read. To adapt a request is to convert
or describe the files that the reader cannot take as they are.
"""
