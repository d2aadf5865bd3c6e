"""What is this file, and how would each model receive it?"""
