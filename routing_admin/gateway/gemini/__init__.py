"""How is a call to Gemini's API read and answered?"""
