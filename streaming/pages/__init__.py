"""What a job serves over HTTP: metrics, JSON, the page for people; and the lists that a terminal draws, too."""
