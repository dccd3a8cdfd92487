"""Linear algebra that the interior points of several engines share."""
