"""What is an operator told of, and does it arrive?"""
