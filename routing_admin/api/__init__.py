"""What can agents ask under `/api/v1`? The apps' routers combined, with one form of errors."""
