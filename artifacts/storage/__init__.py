"""Where do bytes and their rows come from and go? Uploads, storage, downloads, leftovers."""
