"""Operations other than chat, one endpoint per row of the operations table."""
