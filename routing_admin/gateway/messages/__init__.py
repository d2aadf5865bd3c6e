"""How does a call in the words of Anthropic's Messages come in, and how is it answered?"""
