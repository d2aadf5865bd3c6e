"""How is a call to Anthropic's Messages API read and answered?"""
