"""PS-DSF: the limit of the game for alpha to infinity."""
