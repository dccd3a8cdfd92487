"""Digests of what can be written as JSON."""

from __future__ import annotations

import hashlib
import json


def digest(value: object) -> str:
    """24 hexadecimal digits, the same on every machine."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]
