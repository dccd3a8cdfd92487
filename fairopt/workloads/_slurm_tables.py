"""What Slurm's fields and reasons mean for a snapshot, as data: a table of each, and functions that look things up.

Source: Slurm 26.05, `src/plugins/data_parser/v0.0.46/parsers.c` (names of earlier versions included),
`src/common/job_state_reason.c`, and the page "Job Reason Codes" of its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ._slurm_words import shown

#: Fields that the reader uses, by table.
USED = {
    "nodes": "name state state_flags cpus effective_cpus real_memory specialized_memory tres gres gres_drained "
    "features active_features partitions reservation alloc_cpus temporary_disk sockets cores threads",
    "jobs": "job_id array_job_id array_max_tasks array_task_string account user_name partition job_state "
    "state_reason state_description hold tres_req_str tres_alloc_str tres_per_job tres_per_node tres_per_socket "
    "tres_per_task job_resources gres_detail node_count max_nodes cpus cpus_per_task tasks tasks_per_node "
    "memory_per_cpu memory_per_node features nodes required_nodes excluded_nodes resv_name exclusive shared "
    "minimum_cpus_per_node minimum_tmp_disk_per_node sockets_per_node cores_per_socket threads_per_core",
    "shares": "name parent shares type",
}

#: Fields that bear on the answer and are not used, with what may be wrong therefore.
NOTED = {
    "nodes": {
        "owner": "only jobs of this person may run there, and others count as eligible",
        "mcs_label": "only jobs with this label may run there, and others count as eligible",
        "gpu_spec": "these cores are for jobs with GPUs, and others count as eligible",
        "res_cores_per_gpu": "these cores are for jobs with GPUs, and others count as eligible",
    },
    "jobs": {
        "batch_features": "features of the first node alone are not required here",
        "burst_buffer": "burst buffers are not a resource here",
        "cluster_features": "features of whole clusters are not required here",
        "contiguous": "neighbouring nodes are not required here, so that less may fit than it seems",
        "extra": "if the cluster filters nodes by it, jobs count as eligible on too many",
        "het_job_id": "components of such a job start together; here each may start alone",
        "licenses": "licenses are not a resource here, and jobs that lack them may seem to lack room",
        "mcs_label": "nodes with other labels count as eligible",
        "minimum_switches": "nodes of few switches are not required here, so that less may fit than it seems",
        "preempt_time": "these jobs are being preempted, and count as running",
        "required_switches": "nodes of few switches are not required here, so that less may fit than it seems",
        "segment_size": "nodes of one block are not required here, so that less may fit than it seems",
    },
    "shares": {
        "effective_usage": "weights are shares alone, without the usage of the past",
        "fairshare": "weights are shares alone, without the usage of the past",
        "partition": "shares by partition are not distinguished",
        "usage": "weights are shares alone, without the usage of the past",
        "usage_normalized": "weights are shares alone, without the usage of the past",
    },
}

#: Fields without bearing on who may run where, what is held, what is wanted, and what it weighs.
NO_BEARING = {
    "nodes": "address alloc_idle_cpus alloc_memory architecture boards boot_time burstbuffer_network_address "
    "cert_flags cluster_name comment cpu_binding cpu_load energy external_sensors extra free_mem gres_used hostname "
    "instance_id instance_type last_busy next_state_after_reboot operating_system port power reason reason_changed_at "
    "reason_set_by_user resume_after slurmd_start_time specialized_cores specialized_cpus suspend_time "
    "tls_cert_last_renewal topology tres_used tres_weighted version weight",
    "jobs": "accrue_time admin_comment allocating_node array_task_id association_id batch_flag batch_host "
    "billable_tres burst_buffer_state cluster command comment container container_id core_spec cpu_frequency_governor "
    "cpu_frequency_maximum cpu_frequency_minimum cpus_per_tres cron current_working_directory deadline delay_boot "
    "dependency derived_exit_code eligible_time end_time exit_code failed_node federation_origin "
    "federation_siblings_active federation_siblings_viable flags group_id group_name het_job_id_set het_job_offset "
    "job_size_str last_sched_evaluation licenses_allocated mail_type mail_user max_cpus maximum_switch_wait_time "
    "memory_per_tres memory_update_delay memory_update_margin name network nice oversubscribe power pre_sus_time "
    "preemptable_time prefer priority priority_by_partition profile qos reboot requeue resize_time restart_cnt runtime "
    "scheduled_nodes selinux_context show_flags sockets_per_board standard_error standard_input standard_output "
    "start_time stderr_expanded stdin_expanded stdout_expanded step_id submit_line submit_time suspend_time "
    "system_comment tasks_per_board tasks_per_core tasks_per_socket tasks_per_tres thread_spec time_limit time_minimum "
    "tres_bind tres_freq user_id wckey",
    "shares": "cluster id shares_normalized tres",
}

#: Classes of reasons whose jobs want to run now; the others wait for what no room on nodes would give.
WANTED = ("room", "turn")

#: Patterns of reasons by class, in order.
REASONS = {
    "room": "Resources|None|InvalidReason",
    "turn": "Priority|ReqNodeNotAvail|Constraints|SchedDefer",
    "never": "(Assoc|QOS)Max.*Per(Job|Node)(Limit)?|QOSMin.*|QOSNotAllowed|AccountNotAllowed|InvalidAccount|InvalidQOS|"
    "BadConstraints|DependencyNeverSatisfied|DeadLine|MaxMemPerLimit|PartitionNodeLimit|PartitionTimeLimit|"
    "PartitionConfig",
    "hold": "JobHeld.*|JobHoldMaxRequeue|JobLaunchFailure|NonZeroExitCode|RaisedSignal|SystemFailure|TimeLimit|"
    "InactiveLimit|OutOfMemory|BurstBufferOperation|Reservation(Deleted|Invalid)",
    "dependency": "Dependency|BeginTime|Reservation|Cleaning|Prolog|BurstBufferStageIn|FedJobLock",
    "limit": "Assoc.*|QOS.*|Max.*|AccountingPolicy|JobArrayTaskLimit|Licenses|BurstBufferResources|MpiPortsBusy|"
    "NvidiaImexChannels|Partition(Down|Inactive)|NodeDown|FrontEndDown|Power(NotAvail|Reserved)",
}


def reason_class(reason: str) -> str:
    """Class of a reason; "turn" for one that is not known, so that the job counts as wanted and the reason is said."""
    first = re.split(r"[,( ]", reason.strip("( "))[0]
    found = (name for name, pattern in REASONS.items() if re.fullmatch(pattern, first, re.IGNORECASE))
    return next(found, "turn" if first else "room")


def notes(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[str]:
    """Notes on the fields of these records, by table, that bear on the answer and are not used or not known."""
    said = list[str]()
    for table, records in rows.items():
        known = {*USED[table].split(), *NO_BEARING[table].split()}
        found: dict[str, int] = {}
        for record in records:
            for name, value in record.items():
                if name not in known and shown(value):
                    found[name] = found.get(name, 0) + 1
        for name in NOTED[table]:
            if name in found:
                said.append(f"Not used: {name} (of {found.pop(name)} in {table}.json); {NOTED[table][name]}.")
        if found:
            said.append(f"Not known, and not used: {', '.join(sorted(found))} (in {table}.json).")
    return said
