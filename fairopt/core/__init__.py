"""One statement of optimality and equilibrium, solved in NumPy for one problem or thousands: engines' core."""
