"""What belongs to the whole installation? Languages, retention, recording, and what the environment says."""
