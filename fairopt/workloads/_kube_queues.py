"""Queues of pods, and pods that controllers want but have not created, for example the pods of suspended jobs.

The queue of a pod is named by its label, annotation, group or controller. Kueue suspends jobs until it admits them,
Volcano creates pods only when a job may start, and quotas refuse pods: such pods are in no list of pods, although they
are wanted.

Source: the API types of Kueue (`kueue/v1beta1`, `v1beta2`), Volcano (`scheduling/v1beta1`, `batch/v1alpha1`), KAI
(`scheduling/v2`), JobSet (`jobset/v1alpha2`), and Kubernetes (`batch/v1`, `apps/v1`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ._kube import Key, Object, at, condition, key_of, labels, may_run, name_of, table, tables, text, whole
from ._snapshot import Amounts

_QUEUE = "metadata.labels[kueue.x-k8s.io/queue-name]"
_SET = "metadata.labels[jobset.sigs.k8s.io/jobset-name]"
_WORKLOAD = "metadata.annotations[kueue.x-k8s.io/workload]"
_VOLCANO = "metadata.annotations[scheduling.volcano.sh/queue-name]"
_GROUP = "metadata.annotations[scheduling.k8s.io/group-name]"
_KAI = "metadata.labels[kai.scheduler/queue]"
#: Scheduling gates with which queues delay pods until they are admitted.
GATES = ("kueue.x-k8s.io/", "scheduling.volcano.sh/")

#: Pod templates with the number of pods of each, whether the pods wait in a queue, and why they are not created.
Asked = tuple[Sequence[tuple[Object, int]], bool, str]


@dataclass
class Pods:
    """Relevant data of `count` equal pods, whether or not they are created yet.

    `waiting` is the reason why they wait, `capped` the reason why they could not run even on an empty cluster, and
    `host` their node; each is '' if there is none. Pods `of_system` reduce the capacity of their node, and pods that
    are `leaving` are being deleted.
    """

    thing: Object
    count: int = 1
    queued: bool = False  # True if the pods wait for admission by a queue
    waiting: str = ""
    capped: str = ""
    host: str = ""
    of_system: bool = False
    leaving: bool = False
    request: Amounts = field(default_factory=Counter)


@dataclass(frozen=True)
class Queue:
    """Queue of a pod: name in the namespace, key of the object with its weight, and why it is stopped, if it is."""

    name: str = ""
    within: Key | None = None
    stopped: str = ""


def owners(thing: Object) -> list[Key]:
    """Keys of the controllers that a pod or workload names."""
    space = text(thing, "metadata.namespace")
    found: list[Key] = [
        (text(one, "kind"), space, text(one, "name")) for one in tables(thing, "metadata.ownerReferences")
    ]
    named = {"JobSet": text(thing, _SET), "Workload": text(thing, _WORKLOAD)}
    return found + [(kind, space, name) for kind, name in named.items() if name]


@dataclass
class Queues:
    """Queues and controllers of a snapshot, from its objects by key (`known`) and by kind (`objects`).

    `unknown` has remarks on missing data, each with the names of the objects concerned.
    """

    known: Mapping[Key | None, Object]
    objects: Mapping[str, Sequence[Object]]
    unknown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._work = {key: one for one in self.objects.get("Workload", ())
                      for key in (key_of("Workload", one), *owners(one))}  # fmt: skip
        self._only: dict[str, set[str]] = defaultdict(set)
        for one in self.objects.get("LocalQueue", ()):
            self._only[name_of(one, "namespace")].add(text(one, "spec.clusterQueue"))

    def reason(self, pod: Object) -> str:
        """Reason why Kueue does not admit a pod that is its own workload; '' for other and for admitted pods."""
        return _refusal(self._work.get(key_of("Pod", pod)))

    def of(self, pod: Object) -> Queue:
        """Queue that a pod or one of its controllers names: of Kueue, otherwise of Volcano, otherwise of KAI.

        If none is named, the queue is the only ClusterQueue of the namespace, or an empty `Queue` if there are several
        or none.
        """
        space, above = text(pod, "metadata.namespace"), [key_of("Pod", pod), *owners(pod)]
        local = [text(pod, _QUEUE)]
        local += [text(self._work.get(key), "spec.queueName") or text(self.known.get(key), _QUEUE) for key in above]
        if name := next(filter(None, local), None):
            return self._kueue(space, name)
        groups = [("PodGroup", space, text(pod, _GROUP)), *(("Job.batch.volcano.sh", *key[1:]) for key in above)]
        for name in filter(None, (text(pod, _VOLCANO), *(text(self.known.get(key), "spec.queue") for key in groups))):
            return self._queue(name, ("Queue", "", name))
        for name in filter(None, (text(one, _KAI) for one in (pod, *map(self.known.get, above)))):
            return self._queue(name, ("Queue.scheduling.run.ai", "", name))
        for of in self._only[space] if len(self._only[space]) == 1 else ():
            what = "Pods name no queue, and are taken to be of the only ClusterQueue of their namespace"
            self.unknown[what].append(space)
            return self._queue("", ("ClusterQueue", "", of))
        return Queue()

    def _kueue(self, space: str, name: str) -> Queue:
        of = text(self.known.get(local := ("LocalQueue", space, name)), "spec.clusterQueue")
        held = [f"{key[0]} {key[2]} is stopped ({policy})" for key in (local, ("ClusterQueue", "", of))
                if (policy := at(self.known.get(key), "spec.stopPolicy")) in ("Hold", "HoldAndDrain")]  # fmt: skip
        return self._queue(name, ("ClusterQueue", "", of) if of else local, "; ".join(held))

    def _queue(self, name: str, key: Key, stopped: str = "") -> Queue:
        if key not in self.known:
            self.unknown["Queues whose weight is not in the file; it is taken to be 1"].append(name)
        return Queue(name, key, stopped)

    def nodes(self, pod: Object, queue: Queue, nodes: Sequence[Object]) -> list[bool]:
        """Mask of nodes for a pod waiting in Kueue, on which each resource group of its queue has a fitting flavor.

        A resource group with a flavor that is not in the file does not restrict the nodes.
        """
        may = may_run(pod, nodes)
        for k, group in enumerate(tables(self.known.get(queue.within), "spec.resourceGroups")):
            flavors = [self.known.get(("ResourceFlavor", "", text(one, "name"))) for one in tables(group, "flavors")]
            if flavors and None not in flavors:
                rows = [_admits(pod, flavor, nodes) for flavor in flavors]
                may = [any(fits) and (not k or before) for before, *fits in zip(may, *rows, strict=True)]
        return may

    def missing(self, pods: Iterable[Object]) -> Iterator[Pods]:
        """Yield the pods that controllers want in addition to the existing `pods`."""
        if not any(self.objects.get(kind) for kind in _ASKS):
            return
        exist = Counter(key for pod in pods for key in set(owners(pod)))
        for kind, asks in _ASKS.items():
            for one in self.objects.get(kind, ()):
                key = kind.partition(".")[0], *key_of(kind, one)[1:]
                above = [key, *owners(one)]
                there = [exist[of] for of in above]
                elsewhere = {"Pod"} if kind == "Workload" else {"JobSet"} - {kind}
                if any(of[0] in elsewhere and (of in self.known or kind == "Workload") for of in above):
                    continue  # the pods of a Workload exist, or a JobSet owns the object and counts its pods
                if _is(one, "Admitted") and not any(there):
                    what = "Admitted Workloads none of whose pods is found by its owner; they count by their pods alone"
                    self.unknown[what].append(name_of(one))
                if kind == "Workload" or not any(of in self._work for of in above):
                    said = sum(whole(one, path) for path in _EXIST)
                    yield from _made(asks(one), max(said, *there), key[0], one)


def _refusal(work: Object | None) -> str:
    """Reason why a workload is not admitted, as stated by Kueue; '' if it is admitted or states none."""
    for kind in ("QuotaReserved", "Admitted"):
        if (found := condition(work, kind)) and found.get("status") != "True":
            return str(found.get("message") or found.get("reason") or "")
    return ""


def _made(asked: Asked, exist: int, kind: str, of: Object) -> Iterator[Pods]:
    """Yield the missing pods of the pod sets of `of`, their owner of this kind; `exist` pods exist already."""
    (sets, queued, why), space = asked, name_of(of, "namespace")
    for template, count in sets:
        new, exist = max(count - exist, 0), max(exist - count, 0)
        metadata = {**table(template, "metadata"), "namespace": space, "name": name_of(of)}
        metadata["ownerReferences"] = [{"kind": kind, "name": name_of(of)}]
        thing = {"metadata": metadata, "spec": table(template, "spec")}
        if new:
            yield Pods(thing, new, queued, why * queued, why * (not queued))


def _is(thing: Object, *kinds: str) -> bool:
    """True if an object has a condition of one of these types."""
    return any(condition(thing, kind).get("status") == "True" for kind in kinds)


def _workload(work: Object) -> Asked:
    """Pod sets of a workload that Kueue has not admitted, without pods that are no longer needed."""
    given = {text(one, "name"): one for one in tables(work, "status.admission.podSetAssignments")}
    less = {text(one, "name"): whole(one, "count") for one in tables(work, "status.reclaimablePods")}
    sets = [(table(one, "template"), whole(given.get(name), "count", whole(one, "count", 1)) - less.get(name, 0))
            for one in tables(work, "spec.podSets") for name in [text(one, "name")]]  # fmt: skip
    active = at(work, "spec.active") is not False
    return () if _is(work, "Finished", "Admitted") else sets, active, _refusal(work) if active else "deactivated"


def _suspended(thing: Object) -> tuple[bool, str]:
    queued = bool(at(thing, "spec.suspend") and at(thing, _QUEUE))
    return queued, "suspended by Kueue" if queued else "suspended"


def _job(job: Object, times: int = 1) -> Asked:
    """Pods that a job runs in parallel; none if the job is complete or has failed."""
    done, at_once = whole(job, "status.succeeded"), whole(job, "spec.parallelism", 1)
    left = whole(job, "spec.completions", at_once + done) - done
    queued, why = _suspended(job)
    sets = [(table(job, "spec.template"), min(at_once, left) * times)]
    return () if _is(job, "Complete", "Failed") else sets, queued, why if at(job, "spec.suspend") else _NOT_MADE


def _jobset(jobs: Object) -> Asked:
    """Pods of a suspended JobSet; the jobs of an active JobSet exist, and `_job` counts their pods."""
    sets = [one for part in tables(jobs, "spec.replicatedJobs") for one in
            _job(table(part, "template"), whole(part, "replicas", 1))[0]]  # fmt: skip
    idle = at(jobs, "spec.suspend") and not _is(jobs, "Completed", "Failed")
    return sets if idle else (), *_suspended(jobs)


def _volcano_job(job: Object) -> Asked:
    """Pods of a waiting Volcano job, which are created when the queue has capacity for the whole group."""
    sets = [(table(one, "template"), whole(one, "replicas", 1)) for one in tables(job, "spec.tasks")]
    waits = text(job, "status.state.phase") in ("", "Pending", "Restarting")
    return sets if waits else (), True, "waits in its queue of Volcano"


def _replicas(of: Object) -> Asked:
    """Pods of a ReplicaSet or StatefulSet, some of which a quota may have refused."""
    sets = [(table(of, "spec.template"), whole(of, "spec.replicas", 1))]
    return sets, False, str(condition(of, "ReplicaFailure").get("message") or _NOT_MADE)


#: Fields in which controllers state how many of their pods exist; each kind of controller has some of these fields.
_EXIST = ("status.replicas", "status.active", "status.pending")
_NOT_MADE = "its controller has not created it"
#: Functions that return the pods wanted by a controller, by its kind.
_ASKS: Mapping[str, Callable[[Object], Asked]] = {
    "Workload": _workload, "Job": _job, "JobSet": _jobset, "Job.batch.volcano.sh": _volcano_job,
    "ReplicaSet": _replicas, "StatefulSet": _replicas,
}  # fmt: skip


def _admits(pod: Object, flavor: Object | None, nodes: Sequence[Object]) -> list[bool]:
    """Mask of nodes that have the labels of a flavor and may run the pod with the tolerations of both."""
    spec = {**table(pod, "spec"), "tolerations": tables(pod, "spec.tolerations") + tables(flavor, "spec.tolerations")}
    given = table(flavor, "spec.nodeLabels").items()
    return [
        one and given <= labels(node).items() for one, node in zip(may_run({"spec": spec}, nodes), nodes, strict=True)
    ]
