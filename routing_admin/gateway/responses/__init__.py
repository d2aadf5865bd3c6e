"""How is a call to OpenAI's Responses API read and answered?"""
