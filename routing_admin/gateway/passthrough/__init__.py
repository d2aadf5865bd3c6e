"""Operations other than chat, with one endpoint per row of the table of operations."""
