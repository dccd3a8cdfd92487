"""What comes out: allocations and traces, with their files, numbers and pictures."""
