"""What a broker answers: one file per kind of request; `table` joins request code and handler."""
