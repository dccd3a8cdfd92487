"""Queues of pods, and the pods that controllers want and that do not exist: those of suspended jobs above all.

A pod belongs to the queue that its label, its annotation, its group or its controller names. Kueue suspends jobs until
it admits them, Volcano creates the pods of jobs late, and quotas refuse pods: such pods are in no list of pods.

Source: the API types of Kueue (`kueue/v1beta1`, `v1beta2`), Volcano (`scheduling/v1beta1`, `batch/v1alpha1`), JobSet
(`jobset/v1alpha2`), and Kubernetes (`batch/v1`, `apps/v1`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._kube import Object, condition, labels, may_run, name_of, table, tables, whole
from ._snapshot import quantity

_QUEUE = "kueue.x-k8s.io/queue-name"
#: Gates by which queues hold pods until it is their turn.
GATES = ("kueue.x-k8s.io/", "scheduling.volcano.sh/")
_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_VOLCANO = "scheduling.volcano.sh/queue-name"
_SET = "jobset.sigs.k8s.io/jobset-name"
_WORKLOAD = "kueue.x-k8s.io/workload"
#: Annotations of pods that are read.
ANNOTATIONS = (*_GROUPS, _VOLCANO, _WORKLOAD)
_HELD = ("Hold", "HoldAndDrain")

Key = tuple[str, Any, Any]
#: Templates of pods with their numbers, whether they wait in a queue, and why they do not exist.
Asked = tuple[list[tuple[Object, int]], bool, str]


@dataclass
class Missing:
    """Pods that a controller wants and that do not exist, all alike; `capped` if they cannot come to be now."""

    pod: Object
    count: int
    reason: str = ""
    capped: bool = False


@dataclass(frozen=True)
class Queue:
    """Queue of a pod: its name within the namespace, that of its weight, and why nothing leaves it, if so."""

    name: str = ""
    within: str = ""
    weight: float = 1.0
    stopped: str = ""


def owners(thing: Object) -> list[Key]:
    """Controllers of a pod or a workload, as far as it names them."""
    metadata = table(thing, "metadata")
    space, marks = metadata.get("namespace"), table(metadata, "annotations")
    found = [(str(one.get("kind")), space, one.get("name")) for one in tables(metadata, "ownerReferences")]
    named = {"JobSet": labels(thing).get(_SET), "Workload": marks.get(_WORKLOAD)}
    return found + [(kind, space, name) for kind, name in named.items() if name]


def key_of(kind: str, thing: Object) -> Key:
    """Key of an object."""
    return kind, table(thing, "metadata").get("namespace"), name_of(thing)


@dataclass
class Queues:
    """Queues and controllers of a snapshot, from its objects by kind."""

    objects: Mapping[str, Sequence[Object]]
    unknown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        known = {key_of(kind, one): one for kind, some in self.objects.items() for one in some}
        self._known: dict[Key, Object] = known
        workloads = self.objects.get("Workload", ())
        self._work = {key: one for one in workloads for key in (key_of("Workload", one), *owners(one))}
        self._only: dict[object, set[object]] = defaultdict(set)
        for one in self.objects.get("LocalQueue", ()):
            self._only[name_of(one, "namespace")].add(table(one, "spec").get("clusterQueue"))

    def reason(self, pod: Object) -> str:
        """Reason for which Kueue does not admit a pod that is a workload of its own."""
        return _refusal(self._work.get(key_of("Pod", pod), {}))

    def of(self, pod: Object) -> Queue:
        """Queue of a pod."""
        space, marks = table(pod, "metadata").get("namespace"), table(pod, "metadata", "annotations")
        above = [key_of("Pod", pod), *owners(pod)]
        name = labels(pod).get(_QUEUE) or next(filter(None, map(self._local, above)), None)
        if name:
            return self._kueue(space, str(name))
        group = self._known.get(("PodGroup", space, next(filter(None, map(marks.get, _GROUPS)), None)), {})
        jobs = [self._known.get(("Job.batch.volcano.sh", *key[1:]), {}) for key in above if key[0] == "Job"]
        given = [marks.get(_VOLCANO), *(table(one, "spec").get("queue") for one in (group, *jobs))]
        if name := next(filter(None, given), None):
            return self._volcano(str(name))
        if len(self._only[space]) == 1:
            what = "Pods name no queue, and are taken to be of the only ClusterQueue of their namespace"
            self.unknown[what].append(str(space))
            return Queue("", f"ClusterQueue {(of := next(iter(self._only[space])))}", self._weight(of))
        return Queue()

    def _local(self, key: Key) -> object:
        """Local queue that a controller names, or its workload."""
        work = table(self._work.get(key, {}), "spec").get("queueName")
        return work or labels(self._known.get(key, {})).get(_QUEUE)

    def _kueue(self, space: object, name: str) -> Queue:
        local = self._known.get(("LocalQueue", space, name))
        of = table(local or {}, "spec").get("clusterQueue")
        cluster = self._known.get(("ClusterQueue", None, of))
        if cluster is None:
            self.unknown["LocalQueue or ClusterQueue that is not in the file, with weight 1"].append(f"{space}/{name}")
        held = [f"{kind} {name_of(one)} is stopped ({table(one, 'spec').get('stopPolicy')})"
                for kind, one in (("LocalQueue", local), ("ClusterQueue", cluster))
                if one and table(one, "spec").get("stopPolicy") in _HELD]  # fmt: skip
        return Queue(name, f"ClusterQueue {of}", self._weight(of), "; ".join(held))

    def _weight(self, of: object) -> float:
        sharing = table(self._known.get(("ClusterQueue", None, of), {}), "spec", "fairSharing")
        return float(quantity(sharing["weight"])) if sharing.get("weight") is not None else 1.0

    def _volcano(self, name: str) -> Queue:
        queue = self._known.get(("Queue", None, name))
        if queue is None:
            self.unknown["Queue of Volcano that is not in the file, with weight 1"].append(name)
        return Queue(name, f"Queue {name}", float(whole(table(queue or {}, "spec").get("weight"), "weight", 1)))

    def nodes(self, pod: Object, queue: Queue, nodes: Sequence[Object]) -> list[bool]:
        """Nodes for which a flavor of each group of its queue may admit a pod that waits in Kueue."""
        cluster = self._known.get(("ClusterQueue", None, queue.within.removeprefix("ClusterQueue ")), {})
        work = next((self._work[key] for key in (key_of("Pod", pod), *owners(pod)) if key in self._work), {})
        given = {name for one in tables(work, "status", "admission", "podSetAssignments")
                 for name in table(one, "flavors").values()}  # fmt: skip
        may = may_run(pod, nodes)
        for group in tables(cluster, "spec", "resourceGroups"):
            names = [one.get("name") for one in tables(group, "flavors")]
            flavors = [self._known.get(("ResourceFlavor", None, name)) for name in names if name in given or not given]
            if flavors and None not in flavors:
                rows = [may_run(one, nodes) for one in (_flavored(pod, flavor or {}) for flavor in flavors) if one]
                may = [one and any(row[i] for row in rows) for i, one in enumerate(may)]
        return may

    def missing(self, pods: Iterable[Object]) -> Iterator[Missing]:
        """Pods that controllers want beside those that exist and are not being deleted."""
        exist = Counter(key for pod in pods for key in set(owners(pod)))
        for one in self.objects.get("Workload", ()):
            keys = [key_of("Workload", one), *owners(one)]
            there = max(exist[key] for key in keys)
            if condition(one, "Finished").get("status") == "True" or any(key[0] == "Pod" for key in keys):
                continue  # pods that are workloads of their own exist
            if condition(one, "Admitted").get("status") != "True":
                idle = table(one, "spec").get("active") is False
                yield from _made(
                    (_sets(one), not idle, "deactivated" if idle else _refusal(one)), there, "Workload", one
                )
            elif not there:
                what = "Admitted Workloads, none of whose pods is found by its owner; they count by their pods alone"
                self.unknown[what].append(name_of(one))
        for kind, asks in _ASKS.items():
            for one in self.objects.get(kind, ()):
                key = kind.partition(".")[0], *key_of(kind, one)[1:]
                sets = [of for of in owners(one) if of[0] == "JobSet" and of in self._known]
                if not sets and not any(of in self._work for of in (key, *owners(one))):  # else counted there
                    yield from _made(asks(one), exist[key], key[0], one)


def _refusal(work: Object) -> str:
    """Reason for which Kueue does not admit a workload, as it states it."""
    for kind in ("QuotaReserved", "Admitted"):
        if (found := condition(work, kind)) and found.get("status") != "True":
            return str(found.get("message") or found.get("reason") or "")
    return ""


def _made(asked: Asked, exist: int, kind: str, of: Object) -> Iterator[Missing]:
    """Pods of sets beyond those that exist, owned by an object of this kind."""
    (sets, queued, why), space = asked, name_of(of, "namespace")
    for template, count in sets:
        new, exist = max(count - exist, 0), max(exist - count, 0)
        metadata = {**table(template, "metadata"), "namespace": space, "name": name_of(of)}
        metadata["ownerReferences"] = [{"kind": kind, "name": name_of(of)}]
        if new:
            yield Missing({"metadata": metadata, "spec": table(template, "spec")}, new, why, not queued)


def _sets(work: Object) -> list[tuple[Object, int]]:
    """Pod sets of a workload of Kueue, with the counts of its admission, less pods that are no longer needed."""
    given = {one.get("name"): one.get("count") for one in tables(work, "status", "admission", "podSetAssignments")}
    less = {one.get("name"): whole(one.get("count"), "count") for one in tables(work, "status", "reclaimablePods")}
    return [(table(one, "template"), max(whole(given.get(one.get("name")) or one.get("count"), "count", 1)
             - less.get(one.get("name"), 0), 0)) for one in tables(work, "spec", "podSets")]  # fmt: skip


def _job(job: Object, times: int = 1) -> Asked:
    """Pods that a job runs at once, whether they wait in a queue, and why they do not exist."""
    spec, done = table(job, "spec"), whole(table(job, "status").get("succeeded"), "succeeded")
    at_once = whole(spec.get("parallelism"), "parallelism", 1)
    left = whole(spec.get("completions"), "completions", at_once + done) - done
    over = any(condition(job, kind).get("status") == "True" for kind in ("Complete", "Failed"))
    count = 0 if over else max(min(at_once, left), 0) * times
    suspended = bool(spec.get("suspend"))
    queued = suspended and bool(labels(job).get(_QUEUE))
    why = "suspended by Kueue" if queued else "suspended" if suspended else "its Job has not created it"
    return [(table(spec, "template"), count)], queued, why


def _jobset(jobs: Object) -> Asked:
    """Pods of a suspended set of jobs; those of others are found by their jobs."""
    spec, sets = table(jobs, "spec"), list[tuple[Object, int]]()
    over = any(condition(jobs, kind).get("status") == "True" for kind in ("Completed", "Failed"))
    for one in tables(spec, "replicatedJobs") if spec.get("suspend") and not over else ():
        sets += _job(table(one, "template"), whole(one.get("replicas"), "replicas", 1))[0]
    queued = bool(labels(jobs).get(_QUEUE))
    return sets, queued, "suspended by Kueue" if queued else "suspended"


def _volcano_job(job: Object) -> Asked:
    """Pods of a job of Volcano, which creates them when the queue has room for the group."""
    waits = table(job, "status", "state").get("phase") in (None, "", "Pending", "Running", "Restarting")
    sets = [(table(one, "template"), whole(one.get("replicas"), "replicas", 1)) for one in tables(job, "spec", "tasks")]
    return sets if waits else [], True, "waits in its queue of Volcano"


def _replicas(of: Object) -> Asked:
    """Pods of a set of replicas; a quota may refuse some."""
    count = whole(table(of, "spec").get("replicas"), "replicas", 1)
    why = condition(of, "ReplicaFailure").get("message") or "its controller has not created it"
    return [(table(of, "spec", "template"), count)], False, str(why)


#: What controllers want, by kind.
_ASKS: Mapping[str, Callable[[Object], Asked]] = {
    "Job": _job, "JobSet": _jobset, "Job.batch.volcano.sh": _volcano_job,
    **dict.fromkeys(("ReplicaSet", "ReplicationController", "StatefulSet"), _replicas),
}  # fmt: skip


def _flavored(pod: Object, flavor: Object) -> Object | None:
    """Pod with the node labels and tolerations of a flavor; None if it asks for other values of these labels."""
    selector, given = table(pod, "spec", "nodeSelector"), table(flavor, "spec", "nodeLabels")
    if any(selector.get(name, value) != value for name, value in given.items()):
        return None
    tolerations = [*tables(pod, "spec", "tolerations"), *tables(flavor, "spec", "tolerations")]
    spec = {**table(pod, "spec"), "nodeSelector": {**selector, **given}, "tolerations": tolerations}
    return {"metadata": table(pod, "metadata"), "spec": spec}
