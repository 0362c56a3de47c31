"""When the query looks for work: shortly before somebody looks at what it found."""
