"""Which troubles does an operator have to hear of, and how is a chat told of them?"""
