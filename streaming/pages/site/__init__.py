"""The job over HTTP: metrics, health, `/api/v1/`, and the page for people, which is made here."""
