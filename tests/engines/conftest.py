"""These tests are of engines for problems of any size: kernels for small ones would answer before them."""

from kernels import large_engines

__all__ = ["large_engines"]
