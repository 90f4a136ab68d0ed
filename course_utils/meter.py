"""The meter of nbtorchrun, under the course's name."""

from nbtorchrun.meter import Call, Moved, Wire, cost, meter, wire_bytes

__all__ = ["Call", "Moved", "Wire", "cost", "meter", "wire_bytes"]
