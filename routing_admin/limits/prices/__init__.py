"""What does a model cost at a provider, at a moment?"""
