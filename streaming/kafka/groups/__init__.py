"""Consumer groups: what their coordinators' logs say of committed offsets and members. Rows in, rows out: no files, no clock."""
