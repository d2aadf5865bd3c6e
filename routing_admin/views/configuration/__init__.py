"""Where is the configuration exported and imported? Both files, and an import that is reviewed first."""
