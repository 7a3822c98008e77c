"""The client: it gives each run to a slot, takes its result, and gives it to another slot when the first has gone."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from twinnet.cluster.address import Address
from twinnet.cluster.certificates import Certificates
from twinnet.cluster.contact import NobodyThere, check_scheduler, security_of, wait_for_scheduler
from twinnet.cluster.engine import ClusterError, distributed, hush_engine
from twinnet.cluster.joining import ANNOUNCED, PROGRESS
from twinnet.cluster.messages import Asked, apart, made_from, study_message
from twinnet.cluster.remote_run import make_for_client, study_digest
from twinnet.cluster.sending import MOST_TOGETHER, Request, SlotSender
from twinnet.code_version import code_version
from twinnet.study.machine import describe_versions
from twinnet.study.plan import PlannedRun
from twinnet.study.resolution import Study
from twinnet.study.runner import Interrupted, Made, PlaceLost, Progress

__all__ = ["MOST_SIDE_BY_SIDE", "ClusterPlaces", "RemoteSlot"]

MOST_SIDE_BY_SIDE = 512
MOST_ATTEMPTS = 10
"""A run whose worker ends so often is reported as failed: it may be the run that ends it."""
_LOOK_EVERY_S = 0.5
_PATIENCE_S = 60.0
_CONNECT_S = 5.0
_TOGETHER_S = 0.25
"""Runs that take so long together, in seconds, are asked of a slot at once."""
_NEW = 0.2
"""The weight of the last run in what runs are taken to last."""
_REFUSED_PATIENCE_S = 5.0
"""The longest wait in seconds for another slot while all present ones refuse the study: one may be starting again."""


@dataclass(frozen=True)
class RemoteSlot:
    """A slot of a machine, as its worker announces it.

    Attributes
    ----------
    address
        Its own in the engine; a slot that was started again has another.
    machine, number
        Its name.
    takes_wall
        Whether its calibration lab was valid.
    why_not
        Why it was not.
    """

    address: str
    machine: str
    number: int
    takes_wall: bool
    why_not: str

    def __str__(self) -> str:
        """Its name."""
        return f"{self.machine} slot {self.number}"


class ClusterPlaces:
    """The slots of all workers of a scheduler, as places for `run_plan`; use it with ``with``.

    On the wall clock all runs of a repetition go to one machine, so that levels and machines are not confounded, for as
    long as that machine is there.

    Parameters
    ----------
    address, certificates
        The scheduler, and what opens the door to it.
    study
        The study that the runs are of.
    interface, fabric_threads
        As `LabExecutor` takes them.
    placed
        The machines on which repetitions were begun before.
    patience_s
        How long a scheduler or workers that have gone are waited for, in seconds.

    Raises
    ------
    ClusterError
        The scheduler cannot be used, or does not have a worker within `patience_s` that takes the study's runs.
    """

    def __init__(
        self,
        address: Address,
        certificates: Certificates | None,
        study: Study,
        interface: str = "auto",
        fabric_threads: int | Literal["auto"] | None = None,
        placed: Mapping[int, str] | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._address, self._certificates = address, certificates
        self._wall = study.specification.clock == "wall"
        self._message = study_message(study)
        self._digest = study_digest(self._message)
        self._interface = interface
        self._fabric_threads: int | Literal["auto"] | None = fabric_threads
        self._placed = dict(placed or {})
        self._patience_s = patience_s
        self._slots: dict[str, RemoteSlot] = {}
        self._busy: Counter[str] = Counter()
        self._senders: dict[str, SlotSender] = {}
        self._took_s: float | None = None
        self._knowing: set[str] = set()
        self._refused: dict[str, str] = {}
        self._ends: Counter[str] = Counter()
        self._looked_s = 0.0
        self._seen_s = time.monotonic()
        self._going: dict[str, tuple[RemoteSlot, Progress]] = {}
        self._client: Any = None
        self._lock = threading.Lock()

    def __enter__(self) -> ClusterPlaces:
        """Connect to the scheduler and wait for its workers."""
        hush_engine()
        wait_for_scheduler(self._address, self._certificates)
        self._client = self._connected()
        self._seen_s = time.monotonic()
        try:
            while not self.slots():
                self._check_patience()
                time.sleep(0.1)
        except BaseException:
            self.close()
            raise
        return self

    def _connected(self) -> Any:
        client = distributed().Client(
            str(self._address),
            security=security_of(self._certificates),
            timeout=min(self._patience_s, _CONNECT_S),
            set_as_default=False,
            # Results are data: what would have to be unpickled is refused.
            deserializers=["dask", "msgpack"],
        )
        client.subscribe_topic(PROGRESS, self._hear)
        return client

    def _connect_again(self) -> None:
        """Connect anew when a scheduler listens. The engine would try by itself, after pauses that soon are longer
        than a scheduler needs to come back."""
        try:
            check_scheduler(self._address, self._certificates)
            gone, self._client = self._client, self._connected()
        except (NobodyThere, OSError, TimeoutError, RuntimeError):
            return
        threading.Thread(target=_left, args=(gone,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        """Leave the scheduler; runs that still go on there are ended."""
        self.close()

    def close(self) -> None:
        """Leave the scheduler."""
        for sender in self._senders.values():
            sender.close()
        if self._client is not None:
            self._client.close(timeout=2)

    def _hear(self, event: tuple[float, Any]) -> None:
        """Take over what a worker says of a run that is one of ours."""
        try:
            report = event[1]
            place, progress = self._going[report["attempt"]]
            progress.fraction = min(1.0, max(0.0, float(report["fraction"])))
            progress.doing = f"{str(report['doing'])[:80]} on {place}"
        except (KeyError, TypeError, ValueError, IndexError):
            return

    @property
    def count(self) -> int:
        """The number of slots that are available now for the study's runs."""
        return len(self._slots)

    @property
    def most(self) -> int:
        """The largest number of runs that can go on at once."""
        return MOST_SIDE_BY_SIDE

    @property
    def elsewhere(self) -> bool:
        """Yes: in the slots of workers."""
        return True

    def slots(self) -> list[RemoteSlot]:
        """The slots that take the study's runs, as the scheduler knows them now."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_EVERY_S:
            self._slots = {one.address: one for one in self._usable(self._announced())}
            self._looked_s = time.monotonic()
            if self._slots:
                self._seen_s = self._looked_s
        return list(self._slots.values())

    def _announced(self) -> dict[str, dict[str, Any]]:
        if self._client.status != "running":
            self._connect_again()
        try:
            identity = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=5)
            return {
                str(address): worker[ANNOUNCED]
                for address, worker in identity["workers"].items()
                if isinstance(worker.get(ANNOUNCED), dict)
            }
        except (OSError, TimeoutError, RuntimeError, AttributeError, TypeError, KeyError):
            # The scheduler is not there; how long that is borne is said elsewhere.
            return {}

    def _usable(self, announced: Mapping[str, Mapping[str, Any]]) -> Iterable[RemoteSlot]:
        self._refused = {}
        for address, about in announced.items():
            slot = RemoteSlot(
                address,
                str(about.get("name")),
                int(about.get("slot") or 0),
                bool(about.get("wall")),
                str(about.get("why_not")),
            )
            if about.get("version") != (ours := code_version()):
                self._refused[str(slot)] = f"is of twinnet {about.get('version')}, and this is twinnet {ours}"
            elif self._wall and not slot.takes_wall:
                self._refused[str(slot)] = f"takes no runs on the wall clock: {slot.why_not}"
            else:
                yield slot

    def _check_patience(self) -> None:
        without_s = time.monotonic() - self._seen_s
        if self._refused and without_s > min(_REFUSED_PATIENCE_S, self._patience_s):
            refused = "; ".join(f"{name} {why}" for name, why in list(self._refused.items())[:4])
            versions = any("twinnet" in why for why in self._refused.values())
            raise ClusterError(
                f"no slot takes the runs of this study: {refused}",
                "install one version on all machines"
                if versions
                else "free the processors of the machines and start "
                "their workers again, or simulate with --clock virtual",
            )
        if without_s > self._patience_s:
            raise ClusterError(
                f"the scheduler at {self._address} has had no worker for {self._patience_s:g} s, or has gone",
                f"start one: twinnet worker --at {self._address}; finished runs are kept, the same command goes on",
            )

    def take(self, waiting: Sequence[PlannedRun]) -> tuple[int, RemoteSlot] | None:
        """A free slot for the next run that may be made there."""
        slots = self.slots()
        if not slots:
            if not self._busy.total():
                self._check_patience()
            return None
        most = self._runs_of_a_slot(-(-(len(waiting) + self._busy.total()) // len(slots)))
        free = sorted((one for one in slots if self._busy[one.address] < most), key=lambda one: self._busy[one.address])
        if not free:
            return None
        found = self._chosen(waiting, free, {one.machine for one in slots})
        if found is not None:
            self._busy[found[1].address] += 1
        return found

    def _runs_of_a_slot(self, share: int) -> int:
        """The number of runs that a slot is given at once: one, or as many short ones on the virtual clock as go
        together, and as many again that wait for those. `share` is its share of those that wait or are going on."""
        if self._wall or self._took_s is None:
            return 1
        together = min(MOST_TOGETHER, int(_TOGETHER_S / max(self._took_s, 1e-3)))
        return 1 if together < 2 else max(1, min(2 * together, share))

    def _chosen(
        self, waiting: Sequence[PlannedRun], free: Sequence[RemoteSlot], machines: set[str]
    ) -> tuple[int, RemoteSlot] | None:
        if not self._wall:
            return len(waiting) - 1, free[0]
        begun = Counter(self._placed.values())
        for index in range(len(waiting) - 1, -1, -1):
            repetition = waiting[index].repetition
            home = self._placed.get(repetition)
            if home is None or home not in machines:
                # The machine with the fewest repetitions, so that all have about as many.
                slot = min(free, key=lambda one: begun[one.machine])
                self._placed[repetition] = slot.machine
                return index, slot
            at_home = next((one for one in free if one.machine == home), None)
            if at_home is not None:
                return index, at_home
        return None

    def free(self, place: RemoteSlot) -> None:
        """The run in this slot has ended."""
        self._busy[place.address] -= 1

    def make(self, run: PlannedRun, place: RemoteSlot, progress: Progress) -> Made:
        """Have `run` made in the slot `place`.

        Raises
        ------
        Interrupted
            `progress` said that it is to stop; the run's lab is being ended.
        PlaceLost
            The worker, or the scheduler, has gone.
        """
        progress.doing = f"on {place}"
        if self._ends[run.id] >= MOST_ATTEMPTS:
            return self._given_up(run, place)
        content = self._ask(run, place, progress, with_study=place.address not in self._knowing)
        answer = made_from(content, run)
        if isinstance(answer, tuple) and answer[0] == "study wanted":
            answer = made_from(self._ask(run, place, progress, with_study=True), run)
        if isinstance(answer, Made):
            self._knowing.add(place.address)
            took_s = float(answer.record["elapsed_s"])
            self._took_s = took_s if self._took_s is None else self._took_s + _NEW * (took_s - self._took_s)
            return answer
        kind, message = answer
        if kind == "refused":
            raise ClusterError(f"{place} refuses the run {run.id}: {message}")
        # Ended there by somebody else.
        raise PlaceLost

    def _given_up(self, run: PlannedRun, place: RemoteSlot) -> Made:
        message = (
            f"the worker that made this run ended {MOST_ATTEMPTS} times (the messages of `twinnet worker` say how)"
        )
        record = {
            "versions": describe_versions(),
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "elapsed_s": 0.0,
            "machine": {"name": place.machine, "slot": place.number},
        }
        return Made(record, {"name": "WorkersLost", "message": message})

    def _ask(self, run: PlannedRun, place: RemoteSlot, progress: Progress, with_study: bool) -> bytes:
        asked = Asked(
            run.id, run.digest, dict(run.levels), run.repetition, self._digest, self._interface, self._fabric_threads
        )
        content = json.dumps(asdict(asked)).encode()
        with self._lock:
            if place.address not in self._senders:
                self._senders[place.address] = SlotSender(lambda requests: self._answers(requests, place))
            sender = self._senders[place.address]
        return sender.ask(Request(run.id, content, with_study, self._ends[run.id] > 0, progress))

    def _answers(self, requests: Sequence[Request], place: RemoteSlot) -> list[bytes]:
        """What the slot `place` answers to some requests, which it is asked together."""
        attempt = f"{requests[0].run_id}-{uuid.uuid4().hex}"
        progress = requests[0].progress
        client = self._client
        if client.status != "running":
            # What is sent now would wait for a scheduler that may never come.
            raise PlaceLost
        self._going[attempt] = place, progress
        try:
            future = client.submit(
                make_for_client,
                attempt,
                [one.content for one in requests],
                self._message if requests[0].with_study else None,
                key=attempt,
                workers=[place.address],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
        except (OSError, RuntimeError, ValueError) as error:
            self._going.pop(attempt, None)
            raise PlaceLost from error
        try:
            self._await(future, client, place, progress)
            if future.status != "finished":
                # Only a worker's end makes an error of a run; a scheduler's end cancels it.
                for one in requests:
                    self._ends[one.run_id] += future.status == "error"
                raise PlaceLost
            return apart(future.result(timeout=60), len(requests))
        except (Interrupted, PlaceLost, ClusterError):
            raise
        except Exception as error:
            # The engine's errors of lost connections, lost keys and cancelled work have no root of their own.
            raise PlaceLost from error
        finally:
            self._going.pop(attempt, None)
            self._forget(future)

    def _await(self, future: Any, client: Any, place: RemoteSlot, progress: Progress) -> None:
        """Return when `future` has ended in whatever way, or the slot has gone; raise `Interrupted` at a stop."""
        gone = 0
        ended = threading.Event()

        def done(_: object) -> None:
            ended.set()

        future.add_done_callback(done)
        while not ended.wait(0.25):
            if progress.stop.is_set():
                raise Interrupted
            if future.status != "pending":
                return
            # A worker that said good-bye takes its run with it without a word of the engine.
            left = client.status != "running" or (self._slots and place.address not in self._slots)
            gone = gone + 1 if left else 0
            if gone > 8:
                raise PlaceLost

    def _forget(self, future: Any) -> None:
        try:
            if future.status == "pending":
                future.cancel(force=True)
            future.release()
        except Exception:
            # Without a scheduler there is nobody to tell.
            return


def _left(client: Any) -> None:
    """Close a client whose scheduler has gone."""
    try:
        client.close(timeout=1)
    except Exception:
        # It has nothing left to tell anybody.
        return
