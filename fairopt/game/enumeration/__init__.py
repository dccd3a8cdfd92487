"""All equilibria of small games at finite alpha: faces of servers, products of them, and what is solved on each."""
