"""Which route does a request take, and along which candidates, in which language, with which parameters?"""
