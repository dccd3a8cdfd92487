"""What the core is not asked about welfare: is there room for all tasks, and who is held at a floor."""
