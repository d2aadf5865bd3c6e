"""Data and rules about providers: hosts, compatibility options, origins, keys, probes, and the model catalogue."""
