"""The interface of the original programs (seeds), under its original names. No other package imports this one."""
