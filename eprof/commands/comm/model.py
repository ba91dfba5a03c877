"""What waiting for a message costs in closed form ([S] 6, whose equations are lost; docs/comm.md has ours)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eprof.base.errors import CostError
from eprof.base.marks import NONE, Mark
from eprof.clusters.cluster import Clock, Cluster

POLLING, BLOCKING = "polling", "blocking"
WAITING = (POLLING, BLOCKING)
MESSAGE = "message"


class Sample(NamedTuple):
    """Operations of one kind and size, waited for in one way at one clock (None: the one in force, not known).

    latency_s, energy_j: of one operation of one process. busy: the share of the time that its processor worked.
    operations: how many there were. spread: how far repeats are apart, as a share of their median latency.
    """

    primitive: str
    size: float
    waiting: str
    core_mhz: float | None
    latency_s: float
    energy_j: float | None
    busy: float | None = None
    operations: int = 1
    marks: Mark = NONE
    spread: float = 0.0


class Sent(NamedTuple):
    """Messages that a program sent by one call: their number, and their mean size in bytes.

    is_floor: each stands for one message or more (a collective operation).
    """

    call: str
    number: int
    size: float
    is_floor: bool = False


def busy_w(clock: Clock) -> float:
    """P_f in the model of waiting: the power of a processor that computes, or polls."""
    return clock.idle_w + clock.on_chip_w


def waiting_w(waiting: str, clock: Clock) -> float:
    """The power while a message travels: P_f of one that polls, P_0 of one that is blocked."""
    return busy_w(clock) if waiting == POLLING else clock.idle_w


def waits(cluster: Cluster, sent: Sequence[Sent], ways: Sequence[str], clocks: Sequence[Clock]) -> Iterator[Sample]:
    """The model's samples: every message in every way to wait.

    With t its time, t_i that of an interrupt, t_d that of a change of the clock:

        polling      P_f t                     at a lower clock    P_f2 t + 2 P_f t_d
        blocking     P_0 t + P_f t_i           at a lower clock    P_02 t + P_f2 t_i + 2 P_f t_d

    The clock is that of the wait alone. Raises CostError: the table lacks a time.
    """
    for message in sent:
        marks = cluster.marks | (Mark.MISSING if message.is_floor else NONE)
        transfer_s = cluster.messages.of_size(message.size)
        for clock in clocks:
            changes_s = 0.0 if clock == cluster.default else 2 * known(cluster, "clock_change_s")
            for waiting in ways:
                interrupt_s = known(cluster, "interrupt_s") if waiting == BLOCKING else 0.0
                energy_j = (
                    waiting_w(waiting, clock) * transfer_s
                    + busy_w(clock) * interrupt_s
                    + busy_w(cluster.default) * changes_s
                )
                latency_s = transfer_s + interrupt_s + changes_s
                yield Sample(
                    message.call,
                    message.size,
                    waiting,
                    clock.core_mhz,
                    latency_s,
                    energy_j,
                    operations=message.number,
                    marks=marks,
                )


def known(cluster: Cluster, name: str) -> float:
    """What an interrupt or a change of the clock takes while waiting, s. Raises CostError: the table does not say."""
    seconds: float | None = getattr(cluster, name)
    if seconds is None:
        instead = "--waiting polling" if name == "interrupt_s" else f"--clock {cluster.default.core_mhz:g}"
        raise CostError(f"{cluster.name} has no {name} in [time]; write it there, in s, or do without: {instead}.")
    return seconds


def break_even_s(cluster: Cluster) -> float | None:
    """t* = t_i P_f / (P_f - P_0): from this time of a message on, blocking takes fewer joules; None: it never does."""
    saved_w = cluster.default.on_chip_w
    if cluster.interrupt_s is None or not saved_w:
        return None
    return cluster.interrupt_s * busy_w(cluster.default) / saved_w


def limit(cluster: Cluster, waiting: str, clock: Clock) -> float:
    """What endless messages take in the model, as a share of what polling at the default clock does."""
    full_w = busy_w(cluster.default)
    return waiting_w(waiting, clock) / full_w if full_w else 1.0
