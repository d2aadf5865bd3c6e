"""How does a call in the words of OpenAI's Responses come in, and how is it answered?"""
