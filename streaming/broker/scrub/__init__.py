"""The scrub: checks the closed segments of all replicas in the background, so that damage is known before the damaged replica leads."""
