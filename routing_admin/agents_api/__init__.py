"""What can agents ask under `/api/v1`? Put together from the apps' routers, with one shape for errors."""
