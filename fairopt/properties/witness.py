"""`verify` and `Witness`: a violation that can be verified again, with its file format."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import DataError
from ..base.names import short
from ..mechanisms import Mechanism, _label, one
from ..model import cluster_file
from ..model._validate import finite
from ..model.cluster import Cluster
from ._base import Deviation, Finding, Property, described, get, shown
from ._tasks import Instance, seen
from ._verify import EVERY, FRACTIONS, selection, verified

#: Version of the file format.
VERSION = 1
Number = Fraction | float
#: Tolerance for differences of floating-point numbers between machines.
_SLACK = 1e-6
#: Largest length of texts in a file.
_LONGEST = 1000


@dataclass(frozen=True)
class Witness:
    r"""Verified violation of a property by a mechanism on a cluster.

    .. math:: \text{low} \le 1 - \frac{\text{has}}{\text{due}} \le \text{high}

    with the tasks that the decisive user has, and the tasks that the property requires (`Finding`).

    Attributes
    ----------
    mechanism : str
        Name with parameters, such as `alphapf-vds(alpha=2)`.
    property : str
        Name.
    cluster : Cluster
        Cluster as prepared by the mechanism, which is the pool for single-pool mechanisms.
    changed : Cluster or None
        The changed cluster: after a misreport, without a user, or with more capacity.
    users : tuple of str
        Users that misreport or leave.
    before, after : tuple of Fraction or float, (users,)
        Tasks on `cluster` and on `changed`, or work if there are rates; fractions are exact.
    violation : (low, high)
        Bounds on the violation; equal fractions in exact arithmetic.
    text : str
        Description of the violation.
    route : str
        Method of verification.
    selection : str
        The solutions that the violation concerns, for mechanisms with several solutions.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])
    >>> fo.properties.verify("drfh", "sharing-incentive", cluster).replay().violation
    Fraction(1, 9)
    """

    mechanism: str
    property: str
    cluster: Cluster
    changed: Cluster | None
    users: tuple[str, ...]
    before: tuple[Number, ...]
    after: tuple[Number, ...]
    violation: tuple[Number, Number]
    text: str
    route: str
    selection: str = ""

    @cached_property
    def exact(self) -> bool:
        """True if the violation was verified in exact arithmetic."""
        return all(isinstance(value, Fraction) for value in self.violation)

    @cached_property
    def instance(self) -> Instance:
        """The cluster, and its change or None."""
        return self.cluster, None if self.changed is None else Deviation(self.changed, self.users)

    @cached_property
    def sentence(self) -> str:
        """One-line description of the cluster, its change and the violation."""
        return "; ".join([*described(*self.instance), self.text])

    def replay(self) -> Finding:
        """Solve and verify again, compare the result with the stated violation, and return the new finding.

        Raises
        ------
        DataError
            The property does not apply to the change, or the result differs from the stated violation.
        SolverError, NotConverged, CertificateError
            The mechanism is not solved to 1e-9.
        """
        mechanism = one(self.mechanism)
        again = verified(mechanism, self.property, self.instance)
        if again.route != self.route:
            raise DataError(f"it is verified by {again.route}, not by {self.route} as stated in the witness")
        slack = 0 if again.route == FRACTIONS else _SLACK
        (low, high), (least, most) = self.violation, again.violation
        if most < low - slack or least > high + slack or (low != high and not slack):
            raise DataError(
                f"the violation is {_between(least, most)}, not {_between(low, high)} as stated in the witness"
            )
        for name, found in (("before", again.case.work), ("after", again.case.changed_work)):
            for stated, tasks in zip(getattr(self, name), found, strict=True):
                if abs(stated - tasks) > slack * (1 + abs(tasks)):
                    raise DataError(
                        f"a user has {shown(tasks)} tasks {name}, not {shown(stated)} as stated in the witness"
                    )
        if again.route == FRACTIONS and self.text != again.finding.text:
            raise DataError(f"the finding is that {again.finding.text}; the witness states: {short(self.text)}")
        if not self.selection or self.selection.startswith(EVERY):  # unique solutions, or all equilibria
            now = selection(mechanism, self.property, self.instance)
            if now[: len(EVERY)] != self.selection[: len(EVERY)]:
                said = self.selection or "of the only answer"
                raise DataError(f"the witness is {said}; the answers found now: {now or 'only one'}")
        return again.finding

    def document(self) -> files.Table:
        """Plain data of the witness file, in which clusters are cluster files, and fractions are texts."""
        stated = {one.name: _plain(getattr(self, one.name)) for one in dataclasses.fields(self)}
        return {"fairopt_witness": VERSION, **stated}

    @classmethod
    def of(cls, document: Any) -> Witness:
        """Construct a witness from plain data after strict validation; only `replay()` verifies the violation.

        Raises
        ------
        DataError
            The data are invalid.
        """
        if not isinstance(document, dict) or document.get("fairopt_witness") != VERSION:
            raise DataError(
                f"this is no witness file, or its entry fairopt_witness is not {VERSION}, which is read here"
            )
        keys = ("fairopt_witness", *(one.name for one in dataclasses.fields(cls)))
        for odd in sorted(set(document) ^ set(keys)):
            raise DataError(f"{short(odd)} is {'unknown' if odd in document else 'missing'}; known: {', '.join(keys)}")
        stated: files.Table = {name: document[name] for name in keys[1:]}
        for name in ("mechanism", "property", "text", "route", "selection"):
            if not isinstance(stated[name], str) or len(stated[name]) > _LONGEST:
                raise DataError(f"{name} is {short(stated[name])}; it must be a text of at most {_LONGEST} characters")
        for name in ("before", "after", "violation"):
            stated[name] = _values(stated[name], name)
        users, bounds = stated["users"], stated["violation"]
        if not files.texts(users) or (users and stated["changed"] is None):
            raise DataError("users must be a list of names, empty where nothing is changed")
        if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] <= 1:
            said = short(document["violation"])
            raise DataError(f"violation is {said}; it must be two numbers, 0 < low <= high <= 1")
        for name, numbers in (("cluster", "before"), ("changed", "after")):
            if stated[name] is not None or name == "cluster":
                with files.inside(name):
                    stated[name] = Cluster(**cluster_file.arguments(stated[name])[0])
            if len(stated[numbers]) != (0 if stated[name] is None else len(stated[name].users)):
                raise DataError(f"{numbers} must have a number for every user")
        return cls(**stated | {"users": tuple(users)})

    def save(self, path: str | Path) -> None:
        """Write a witness file (JSON); a failure raises `DataError`."""
        text = json.dumps(self.document(), indent=1, allow_nan=False)
        files.write(Path(path), f"{text}\n", "witness file")

    @classmethod
    def load(cls, path: str | Path) -> Witness:
        """Read a witness file; only `replay()` verifies the violation.

        Raises
        ------
        DataError
            The file is invalid; the message states the place.
        """
        return files.read_json(path, "witness file", cls.of)

    def __repr__(self) -> str:
        low, high = self.violation
        at = shown(low) if self.exact else f"{float(low + high) / 2:.6g} (+- {float(high - low) / 2:.1g})"
        lines = [f"{self.mechanism} violates {self.property} by {at} ({self.route}): {self.text}"]
        lines += [f"  {line}" for line in described(*self.instance)]
        what = "work" if self.cluster.rated else "tasks"
        lines.append(f"  {what}: {', '.join(map(shown, self.before))}")
        if self.changed is not None:
            lines.append(f"  {what} after the change: {', '.join(map(shown, self.after))}")
        return "\n".join([*lines, *([f"  {self.selection}"] if self.selection else [])])


def _between(low: Number, high: Number) -> str:
    return shown(low) if low == high else f"{shown(low)} to {shown(high)}"


def _plain(value: Any) -> Any:
    if isinstance(value, Cluster):
        return cluster_file.document(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Fraction) else value


def _values(values: Any, name: str) -> tuple[Number, ...]:
    if not isinstance(values, list):
        raise DataError(f"{name} is {short(values)}; it must be a list of numbers")
    return tuple(_value(value, name) for value in values)


def _value(value: Any, name: str) -> Number:
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise DataError(f"{name} has {short(value)}; write fractions as '2/3'") from None
    if not finite(value):
        raise DataError(f"{name} has {short(value)}; it must be a number, or a fraction such as '2/3'")
    return float(value)


def verify(
    mechanism: Mechanism | str, property: str | Property, cluster: Cluster, deviation: Deviation | None = None
) -> Witness:
    """Verify a violation of a property on a cluster, or on a cluster and its change, and return it as a witness.

    Parameters
    ----------
    mechanism : Mechanism or str
        Mechanism, which is solved to 1e-9 if exact arithmetic is not available.
    property : Property or str
    cluster : Cluster
        For single-pool mechanisms, servers are pooled.
    deviation : Deviation, optional
        The change, for properties that compare two clusters.

    Returns
    -------
    Witness
        The violation with its verification.

    Raises
    ------
    DataError
        The mechanism or property is unknown, the property does not apply, or it is not violated by more than rounding.
    SolverError, NotConverged, CertificateError
        The mechanism is not solved to 1e-9.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])
    >>> fo.properties.verify("drfh", "sharing-incentive", cluster).violation[0]
    Fraction(1, 9)
    """
    chosen = one(mechanism)
    return recorded(chosen, get(property).name, (seen(chosen, cluster), deviation))


def recorded(mechanism: Mechanism, name: str, instance: Instance) -> Witness:
    """Verify a violation in an instance, whose cluster the mechanism has prepared, and return it as a witness.

    Errors are those of `verify`.
    """
    text = written(mechanism)
    found = verified(mechanism, name, instance)
    cluster, deviation = instance
    changed = None if deviation is None else deviation.cluster
    return Witness(
        mechanism=text,
        property=name,
        cluster=cluster,
        changed=changed,
        users=() if deviation is None else deviation.users,
        before=tuple(found.case.work.tolist()),
        after=tuple(found.case.changed_work.tolist()),
        violation=found.violation,
        text=found.finding.text,
        route=found.route,
        selection=selection(mechanism, name, instance),
    )


def written(mechanism: Mechanism) -> str:
    """Text of the mechanism that `fairopt.mechanisms.one` parses, such as `alphapf-vds(alpha=2.0)`.

    Raises
    ------
    DataError
        A parameter has no such text, for example a function.
    """
    text = _label.written(mechanism)
    if one(text) != mechanism:
        raise DataError(f"{mechanism} cannot be written into a witness: a parameter is not plain data")
    return text
