"""Entry point of `python -m fairopt.app.cli`."""

from __future__ import annotations

import sys

from . import main

sys.exit(main())
