"""Which boards a CUDA program sees: CUDA_VISIBLE_DEVICES, by the rules of the CUDA C++ Programming Guide (environment
variables): places or beginnings of UUIDs, up to the first that is none.
"""

from collections.abc import Mapping, Sequence

_ORDER = "PCI_BUS_ID"  # in which NVML lists boards; CUDA's own order is FASTEST_FIRST


def visible(environment: Mapping[str, str], uuids: Sequence[str], names: Sequence[str]) -> tuple[list[int], str]:
    """Places of the visible boards among all, and a sentence where it is not certain which they are (then all).

    uuids, names: of all boards, in the order of the PCI bus.
    """
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    all_boards = list(range(len(uuids)))
    if wanted is None or not all_boards:
        return all_boards, ""
    if "GPU-" in wanted and not all(uuids):
        return (
            all_boards,
            f"CUDA_VISIBLE_DEVICES={wanted} names boards by UUIDs, which not all boards tell, so all are measured",
        )
    boards: list[int] = []
    for word in map(str.strip, wanted.split(",")):
        if word.startswith("MIG-"):
            return (
                all_boards,
                f"CUDA_VISIBLE_DEVICES={wanted} names a part of a board, but power is measured of whole boards",
            )
        matches = [i for i, uuid in enumerate(uuids) if word.startswith("GPU-") and uuid.startswith(word)]
        if word.isdecimal() and int(word) in all_boards:
            matches = [int(word)]
        if len(matches) != 1 or matches[0] in boards:
            break
        boards += matches
    by_place = any(word.strip().isdecimal() for word in wanted.split(","))
    if by_place and len(set(names)) > 1 and environment.get("CUDA_DEVICE_ORDER") != _ORDER:
        return all_boards, (
            f"which boards CUDA_VISIBLE_DEVICES={wanted} means depends on how fast they are, so all are measured; set "
            f"CUDA_DEVICE_ORDER={_ORDER}"
        )
    return boards, "" if boards else f"CUDA_VISIBLE_DEVICES={wanted} leaves no board visible"
