"""The table of everything that agents report, and what it means at one moment: the view that pages and answers are made from."""
