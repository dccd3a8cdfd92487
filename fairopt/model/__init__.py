"""Who wants what, what there is, and what fair means: data, with no idea of how it is solved."""
