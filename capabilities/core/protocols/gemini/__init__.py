"""What does Gemini say and answer? generateContent."""
