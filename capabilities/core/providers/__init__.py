"""What is known about providers: hosts, compatibility options, addresses, keys, probes, the catalogue."""
