"""The one way from a mechanism to an allocation: reduce, ask engines for candidates, certify, expand, wrap."""
