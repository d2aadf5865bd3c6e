"""What does an agent's developer see of it? Its own page, opened by a link, without an account."""
