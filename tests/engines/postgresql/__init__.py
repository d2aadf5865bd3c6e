"""The product's engine, whose tables are emptied in a hundredth of the time: they are nearly empty."""
