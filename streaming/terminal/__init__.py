"""What people run in a terminal: the commands, and what they read from log dirs by themselves."""
