"""Small problems: which method of the core answers, up to which size, and one problem by it."""
