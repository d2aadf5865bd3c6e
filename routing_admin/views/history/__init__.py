"""What was changed, by whom, and how does one go back?"""
