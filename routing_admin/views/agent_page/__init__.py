"""What does whoever builds an agent see of it? Its own page, opened by a link and read without an account."""
