"""The applications: command line and explorer."""
