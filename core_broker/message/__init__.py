"""Messages: what applications send, what a broker stores, and every text and byte form of them."""
