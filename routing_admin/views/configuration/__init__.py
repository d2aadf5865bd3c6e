"""Where is the configuration exported and imported? Both files out, and an import that is looked at first."""
