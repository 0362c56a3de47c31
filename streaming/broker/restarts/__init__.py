"""What a start of a broker after a crash would cost its log dirs, and how far one has come."""
