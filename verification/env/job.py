"""What a simulation is given and what comes back: plain data that crosses process boundaries."""

from dataclasses import dataclass, field

from verification.env.options import Options, Region

__all__ = ["Fault", "Job", "Outcome", "TraceEntry", "Waves", "make_job"]


@dataclass(frozen=True)
class Waves:
    """A waveform to record.

    Attributes
    ----------
    path : str
        An FST file.
    first, end : int
        Cycles since the doorbell; ``end`` is the first that is not recorded.
    """

    path: str
    first: int
    end: int

    def __post_init__(self):
        if not 0 <= self.first < self.end:
            raise ValueError(f"waves must be cycles FROM:TO, 0 <= FROM < TO, not {self.first}:{self.end}")


@dataclass(frozen=True)
class Job:
    """A program with its memory.

    Attributes
    ----------
    base : int
        Address of the program header.
    streams : dict
        Engine number -> (address, number of instructions).
    memory : list of (int, bytes)
        What device memory holds before the doorbell.
    windows : list of Region
        What the host opens to the core.
    dump : list of (int, int)
        Address and length of what comes back.
    options : Options
    trace : bool
        Record when each instruction starts and ends.
    watchdog : int or None
        Value for the WATCHDOG register; ``None`` leaves it alone.
    waves : Waves or None
        Recorded by :mod:`verification.rtl` only.
    """

    base: int
    streams: dict
    memory: list
    windows: list
    dump: list
    options: Options = field(default_factory=Options)
    trace: bool = True
    watchdog: int | None = None
    waves: Waves | None = None


def make_job(image, inputs, options=None, **kwargs):
    """Return the :class:`Job` that runs a :class:`golden.image.Image` and returns its output tensors.

    Raises
    ------
    ValueError, TypeError
        The inputs are not those of the image.
    """
    return Job(base=image.base, streams=dict(image.streams), memory=image.memory(inputs),
               windows=[Region(w.base, w.limit, w.read, w.write) for w in image.windows],
               dump=[(tensor.address, tensor.nbytes) for tensor in image.outputs],
               options=options or Options(), **kwargs)


@dataclass(frozen=True)
class Fault:
    """The error registers of the core.

    Attributes
    ----------
    code : str
        Name of the fault code.
    engine : int
        Engine number, 255: none.
    instruction, info, address : int
    """

    code: str
    engine: int
    instruction: int
    info: int
    address: int


@dataclass(frozen=True)
class TraceEntry:
    """One instruction: engine by name, index in its stream, cycles since the doorbell of its dispatch
    and of its completion (``None``: never)."""

    engine: str
    pc: int
    start: int
    end: int | None


@dataclass(frozen=True)
class Outcome:
    """What a run left behind.

    Attributes
    ----------
    cycles : int
        From the write handshake of the doorbell to the rising edge of the interrupt.
    core_cycles : int
        The core's own CYCLES register.
    counters : dict
        Engine name -> {counter name: value}.
    semaphores : list of int
    fault : Fault or None
    waiting : dict
        Engine name -> (semaphore, value asked for) of the engines that wait at the end.
    dump : list of bytes
        As :attr:`Job.dump` asked.
    trace : list of TraceEntry
        In order of completion, then what did not complete.
    """

    cycles: int
    core_cycles: int
    counters: dict
    semaphores: list
    fault: Fault | None
    waiting: dict
    dump: list
    trace: list
