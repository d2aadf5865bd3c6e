"""Where do bytes and their rows come from and go? Uploads in, files kept, downloads out, leftovers found."""
