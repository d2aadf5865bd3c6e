"""What do the pages of this package need to know? All their reads of rows, one module per family of pages.

What a page shows of the configuration in use comes from the snapshot in memory; here stands what only rows know. A
function says how many queries it takes where that is not one, and none takes more for more rows.
"""
