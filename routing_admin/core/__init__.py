"""Where does a task go? Configuration, fallback and languages in plain Python."""
