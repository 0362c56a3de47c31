"""What `segtail top` shows in a terminal: a state, what keys and answers make of it, and how it is drawn."""
