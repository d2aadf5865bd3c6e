"""What is known about providers? Well-known hosts, compatibility options, addresses, keys, probes, the catalogue."""
