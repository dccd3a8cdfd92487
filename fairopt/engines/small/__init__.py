"""Small problems in dense compiled kernels, one or thousands at a time; what they answer has a compiled certificate.

Kernels (`_*.py`) know arrays only. Their judges are the definitions of `certificates/` once more, in loops, since a
call of NumPy costs more than all the arithmetic of a small problem; tests hold both to each other.
"""
