"""What does Gemini send and answer? generateContent."""
