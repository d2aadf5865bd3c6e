"""The product's PostgreSQL engine with a faster flush of the nearly empty test tables."""
