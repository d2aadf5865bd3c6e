"""What is known about providers: hosts, compatibility options, origins, keys, probes and the catalogue."""
