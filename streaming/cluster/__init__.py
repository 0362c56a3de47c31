"""What is so in the cluster, from the table of everything that agents report: partitions, disks, consumer groups, and what is wrong."""
