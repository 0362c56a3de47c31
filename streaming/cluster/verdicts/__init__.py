"""What is wrong, in words: verdicts, their sentences, and the commands that help; for the page, the terminal and alerts alike."""
