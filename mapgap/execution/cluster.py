"""Clusters of ``dask.distributed``, whose workers do the runs of a sweep.

Whoever reaches a scheduler runs code on its workers, so a cluster listens on the loopback interface or asks for
certificates. What a worker sends is checked as the result of a stranger: it must be about the job, made with the
versions that are here, and its plan is evaluated again.
"""

from __future__ import annotations

import ipaddress
import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from mapgap.catalogue import registry
from mapgap.catalogue.document import read
from mapgap.core import InputError, InstanceBase, MapgapError, Status, Stop
from mapgap.core.storage import is_file
from mapgap.execution.watch import verify
from mapgap.records.environment import versions
from mapgap.records.record import RunRecord

TLS = ("ca_file", "cert", "key")
"""What a file that describes a cluster says of its certificates: paths, from its folder."""
CONNECT_S = 10


class ClusterGone(MapgapError):
    """The scheduler died or cannot be reached any more."""


class OpenCluster(UserWarning):
    """A cluster that everybody who reaches it can use."""


def library(address: str) -> ModuleType:
    """The library behind the extra ``dask``.

    Raises
    ------
    InputError
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise InputError(f"--dask {address}: expected the extra mapgap[dask], found no {error.name}") from error
    found: ModuleType = distributed
    return found


def described(place: str) -> dict[str, str]:
    """The address of a cluster and its certificates: what a file says (a scheduler file of dask, or YAML with
    ``address`` and ``ca_file``, ``cert``, ``key``), or the address alone.

    Raises
    ------
    InputError
        The file is none, or names certificates that are not there.
    """
    if not is_file(place):
        return {"address": place}
    document = read(Path(place))
    document.raise_findings()
    data = document.data
    if not isinstance(data, Mapping) or not isinstance(data.get("address"), str):
        raise InputError(f"--dask {place}: expected a file with the field 'address', found none")
    given = {name: data[name] for name in TLS if name in data}
    if given and set(given) != set(TLS):
        raise InputError(f"--dask {place}: expected {', '.join(TLS)}, found {', '.join(given)} only")
    found = {name: str(Path(place).parent / str(path)) for name, path in given.items()}
    missing = [path for path in found.values() if not is_file(path)]
    if missing:
        raise InputError(f"--dask {place}: expected files of certificates, found no {', '.join(missing)}")
    return {"address": data["address"], **found}


def connect(place: str) -> Any:
    """A client of the cluster of this address or file; close it.

    Certificates come from the file, else from dask's own settings (``DASK_DISTRIBUTED__COMM__TLS__CA_FILE``, …).

    Raises
    ------
    InputError
        No such cluster, or workers with other versions.
    """
    distributed = library(place)
    about = described(place)
    address = about.pop("address")
    security = distributed.Security(
        **(
            {
                "tls_ca_file": about["ca_file"],
                "tls_client_cert": about["cert"],
                "tls_client_key": about["key"],
                "require_encryption": True,
            }
            if about
            else {}
        )
    )
    if address.startswith("tls:") and security.tls_ca_file is None:
        text = f"expected certificates ({', '.join(TLS)} in a file, or dask's settings of TLS), found none"
        raise InputError(f"--dask {place}: {text}")
    if not address.startswith("tls:") and not _is_loopback(address):
        text = f"--dask {place}: no certificates: whoever reaches this scheduler runs code on its workers"
        warnings.warn(text, OpenCluster, stacklevel=2)
    try:
        client = distributed.Client(address, security=security, timeout=CONNECT_S)
    except Exception as error:  # of connections and certificates; the library raises many kinds
        text = f"expected the address of a scheduler, found {error or type(error).__name__}"
        raise InputError(f"--dask {place}: {text}") from error
    try:
        theirs = client.run(_versions)
    except Exception as error:
        client.close()
        raise InputError(f"--dask {place}: expected workers with mapgap, found {error}") from error
    apart = [f"{worker}: {words}" for worker, found in theirs.items() if (words := _apart(found))]
    if apart:
        client.close()
        raise InputError([f"--dask {place}: worker {words}" for words in apart])
    return client


def _versions() -> dict[str, str]:
    """Where it is run."""
    return versions()


def _is_loopback(address: str) -> bool:
    host = urlsplit(address if "//" in address else f"tcp://{address}").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return address.startswith("inproc:")


def _apart(theirs: Mapping[str, str]) -> str:
    """Which packages have other versions than here; Python itself may differ in its last number."""
    found = []
    for name, version in versions().items():
        other = theirs.get(name)
        same = other == version or (name == "python" and str(other).split(".")[:2] == version.split(".")[:2])
        if not same:
            found.append(f"{name} {other or 'none'}")
    here = ", ".join(f"{name} {versions()[name]}" for name in (words.split()[0] for words in found))
    return f"expected {here}, found {', '.join(found)}" if found else ""


def result(future: Any, place: str) -> RunRecord:
    """What a worker sent.

    Raises
    ------
    ClusterGone
        The scheduler has, or every worker that tried the run.
    """
    try:
        record: RunRecord = future.result(timeout=CONNECT_S)
    except Exception as error:
        if isinstance(error, MapgapError):
            raise
        name = type(error).__name__
        text = (
            f"expected a run, found {name}: {error}; finished runs are kept, the same command goes on with the others"
        )
        raise ClusterGone(f"--dask {place}: {text}") from error
    return record


def checked(record: Any, key: Any, instance: InstanceBase) -> RunRecord:
    """The record of a worker, if it is about the job of this key and its plan is what it says; else a failed run."""
    if not isinstance(record, RunRecord):
        raise ClusterGone(f"expected a run record of a worker, found {type(record).__name__}")
    wrong = _apart(record.versions)
    if record.key != key or record.instance_hash != instance.content_hash:
        raise ClusterGone(f"expected a run of {instance.name}, found one of {record.instance} ({record.instance_hash})")
    if not wrong and not record.error and record.plan is not None:
        problem = registry.problems()[instance.problem]
        try:
            evaluation = verify(problem, instance, problem.plan_type.model_validate_json(json.dumps(record.plan)))
        except ValueError as error:
            wrong = f"something that is no plan: {error}"
        else:
            if not evaluation.feasible or evaluation.objective != record.objective:
                wrong = f"a plan that has objective {evaluation.objective} here, not {record.objective}"
    elif not wrong and not record.error and record.objective is not None:
        wrong = "an objective without a plan"
    if not wrong:
        return record
    text = f"the worker's result does not hold: {wrong}"
    return replace(
        record, status=Status.UNKNOWN, stop=Stop.ERROR, objective=None, bound=None, gap=None, error=text, refuted=True
    )
