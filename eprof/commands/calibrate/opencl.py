"""A GPU of any maker by OpenCL, through the package pyopencl, imported when first needed. For `worker`.

What OpenCL does not tell (how many blocks fit, which level of cache it means, the clock in force) is not invented here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.base.text import counted, phrase
from eprof.commands.calibrate.device import DriverError, Gpu, Launch

INSTALL = "pip install 'eprof[opencl]'"
_BLOCK = 256
_THREADS = 2048  # of a multiprocessor of most GPUs; where fewer fit, the others wait their turn
_BOOKS = "7.0"  # of other makers: stores pass the first cache, as from Volta on


def _load() -> Any:
    try:
        import pyopencl
    except ImportError as err:
        raise CollectError(f"OpenCL needs the Python package pyopencl: {INSTALL}.") from err
    return pyopencl


def _name(device: Any) -> str:
    """The name of the board where the driver tells it (AMD), else of the device."""
    return " ".join(str(_told(device, "board_name_amd") or device.name).replace("\0", " ").split())


def _told(device: Any, attribute: str) -> Any:
    """An attribute of an OpenCL device; None where its driver does not know it."""
    try:
        return getattr(device, attribute)
    except (AttributeError, _load().Error):
        return None


def choose(cl: Any, wanted: str) -> Any:
    """The OpenCL device that a name or a number means; "": the only GPU that is no simulation. Raises CollectError."""
    # Every device of every platform, with both names.
    try:
        platforms = cl.get_platforms()
    except cl.Error as err:
        raise CollectError(f"OpenCL finds no driver here (/etc/OpenCL/vendors names them): {err}.") from err
    named = []
    for platform in platforms:
        try:
            named += [(f"{_name(device)} ({platform.name.strip()})", device) for device in platform.get_devices()]
        except cl.Error:
            continue  # a platform without a device says so by an error
    fitting = [device for name, device in named if wanted.lower() in name.lower()]
    if wanted.isdecimal():
        fitting = [device for number, (_, device) in enumerate(named) if number == int(wanted)]
    if not wanted:
        gpus = cl.device_type.GPU | cl.device_type.ACCELERATOR
        fitting = [device for _, device in named if device.type & gpus and not _is_simulated(device)]
    if len(fitting) == 1:
        return fitting[0]
    asked, several = {"": ("GPU", "GPUs")}.get(wanted, ("device of that name", "devices of that name"))
    listed = "; ".join(f"{number}: {name}" for number, (name, _) in enumerate(named)) or "nothing"
    if fitting:
        many = counted(len(fitting), asked, several)
        raise CollectError(f"OpenCL has {many} here; say which by --opencl NAME, or its number: {listed}.")
    by_name = "processors and simulations are taken by name alone"
    raise CollectError(f"OpenCL has no {asked} here ({by_name}); it has {listed}.")


def _is_simulated(device: Any) -> bool:
    return "oclgrind" in device.platform.name.lower()


class OpenClGpu(Gpu):
    """One device, by its name or number, with a queue that says when its kernels ran."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._cl = _load()
        self._device = choose(self._cl, wanted)
        if self._device.max_work_group_size < _BLOCK:
            raise CollectError(
                f"{_name(self._device)} runs blocks of at most {self._device.max_work_group_size} threads, and the "
                f"microbenchmarks have {_BLOCK}."
            )
        self._kernels: dict[str, Any] = {}
        self._first: Any = None
        self._context: Any = None
        self._queue: Any = None
        self._region: Any = None
        self._out: Any = None

    def describe(self) -> dict[str, Any]:
        """What OpenCL reports, with the keys of `CudaGpu.describe`. Sizes in bytes, clocks in kHz; None: not told.

        l2_bytes: of the one cache that OpenCL knows, whichever that is. memory_bytes: half of it is given at once.
        capability: a GPU of NVIDIA tells it, and `is_rated` says so; else how its bytes are counted.
        """
        device = self._device
        major, minor = (_told(device, f"compute_capability_{part}_nv") for part in ("major", "minor"))
        unified = bool(_told(device, "host_unified_memory"))
        return {
            "processor": "opencl",
            "name": _name(device),
            "capability": phrase("{}.{}", major, minor) or _BOOKS,
            "is_rated": major is not None,
            "bus": _bus(device),
            "opencl": f"{device.version.strip()}, driver {device.driver_version.strip()}",
            "vendor": device.vendor.strip(),
            "simulated": _is_simulated(device),
            "in_package": unified or bool(device.type & self._cl.device_type.CPU),
            "sms": device.max_compute_units,
            "memory_bytes": min(device.global_mem_size, 2 * device.max_mem_alloc_size),
            "l2_bytes": device.global_mem_cache_size,
            "has_shared": device.local_mem_type == self._cl.device_local_mem_type.LOCAL,
            "most_mhz": device.max_clock_frequency,
            "core_khz": None,
            "memory_khz": None,
        }

    def build(self, source: Path) -> dict[str, Any]:
        """Compile a source by the driver: "kernels" (names) and "how" in words. Raises CollectError with its words.

        A device without FP64, or whose compiler cannot do it though the driver says so, has no kernels of FP64.
        """
        text = source.read_text(encoding="utf-8")
        options = []
        if not self._device.single_fp_config & self._cl.device_fp_config.FMA:
            options.append("-D WITHOUT_FMA")
        tries = [options, [*options, "-D WITHOUT_FP64"]]
        if "cl_khr_fp64" not in self._device.extensions:
            tries = tries[1:]
        self._context = self._context or self._of_driver(self._cl.Context, [self._device])
        said: list[str] = []
        for chosen in tries:
            try:
                program = self._cl.Program(self._context, text).build(chosen)
            except self._cl.Error as err:
                # The line that says what is wrong.
                lines = [line.strip() for line in str(err).splitlines() if line.strip()]
                said.append(next((line for line in lines if "error" in line.lower()), lines[0])[:300].rstrip("."))
                continue
            made = {kernel.function_name: kernel for kernel in program.all_kernels()}
            self._kernels |= made
            how = " ".join([f"{self._device.platform.name.strip()}'s OpenCL compiler", *chosen])
            return {"kernels": sorted(made), "how": how}
        raise CollectError(f"The OpenCL compiler of {_name(self._device)} cannot build {source.name}: {said[0]}.")

    def load(self, image: Path) -> None:
        """Build the source of kernels; they are looked up by name."""
        self.build(image)
        if self._queue is None:
            profiling = self._cl.command_queue_properties.PROFILING_ENABLE
            self._queue = self._of_driver(self._cl.CommandQueue, self._context, properties=profiling)
            self._region = self._out = self._buffer(4096)

    def _of_driver(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """What a call of OpenCL returns. Raises DriverError where the driver refuses it: the device may be lost."""
        try:
            return call(*arguments, **more)
        except self._cl.Error as err:
            raise DriverError(f"The OpenCL driver says: {' '.join(str(err).split())}.") from err

    def _buffer(self, size: int) -> Any:
        return self._of_driver(self._cl.Buffer, self._context, self._cl.mem_flags.READ_WRITE, size)

    def resident(self, kernel: str, block: int) -> int:
        """How many blocks of `block` threads fit on a multiprocessor of most GPUs; OpenCL does not tell."""
        return max(_THREADS // block, 1)

    def _allocate_region(self, size: int) -> None:
        self._region = None  # freed before the larger one is made
        self._region = self._buffer(size)

    def _begin(self) -> Any:
        self._first = None

    def _launch(self, launch: Launch) -> Any:
        import numpy as np

        sizes = map(np.int32, (launch.vectors, launch.step, launch.iterations))
        values = (self._region, self._out, *sizes, np.float32("nan"), np.float32(self._scale))
        threads = (launch.blocks * launch.block,), (launch.block,)
        event = self._of_driver(self._kernels[launch.kernel], self._queue, *threads, *values)
        self._of_driver(self._queue.flush)
        self._first = self._first or event
        return event

    def _wait(self, event: Any) -> None:
        self._of_driver(event.wait)

    def _seconds(self, begin: Any, event: Any) -> float:
        self._wait(event)
        seconds = (event.profile.end - self._first.profile.start) * 1e-9
        if not seconds > 0:
            raise CollectError("The OpenCL driver does not tell when a kernel ran: its events have no times.")
        return float(seconds)


def _bus(device: Any) -> str:
    """The device's place on the bus, "0000:03:00.0"; "" where no extension tells it."""
    bus, slot = _told(device, "pci_bus_id_nv"), _told(device, "pci_slot_id_nv")
    if bus is not None and slot is not None:
        return f"{_told(device, 'pci_domain_id_nv') or 0:04x}:{bus:02x}:{slot >> 3:02x}.{slot & 7}"
    if (place := _told(device, "topology_amd")) is not None:
        return f"0000:{place.bus & 0xFF:02x}:{place.device & 0xFF:02x}.{place.function}"
    return ""
