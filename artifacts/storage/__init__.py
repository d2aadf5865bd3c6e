"""Storage of bytes in files or a bucket, uploads, downloads, thumbnails, and removal of orphans."""
