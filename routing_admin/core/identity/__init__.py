"""Who is it that signs in with an account elsewhere, and may they?"""
