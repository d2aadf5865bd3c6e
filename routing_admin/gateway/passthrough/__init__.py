"""Operations other than chat, with one endpoint per entry of `OPERATIONS`."""
