"""Choose a request's route, candidates, language and parameters."""
