"""The bundled catalogue of models and prices, and the script `build.py` that generates it."""
