"""Where does the catalogue of models come from, and what would a newer edition change?"""
