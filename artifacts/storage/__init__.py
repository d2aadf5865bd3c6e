"""Storage of bytes in files or an S3 bucket, uploads, downloads, thumbnails, and removal of orphaned bytes."""
