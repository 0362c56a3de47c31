"""Consumer groups: their committed offsets and members, as read from their coordinators' logs. Rows in, rows out: no files, no clock."""
