"""What fills the disks of brokers, what retention frees of it, and when they are full."""
