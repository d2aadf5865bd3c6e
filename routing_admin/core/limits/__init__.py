"""What may an agent use?"""
