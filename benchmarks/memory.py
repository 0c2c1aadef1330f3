"""What the kernel says of this process' memory."""

from pathlib import Path

MIB = 1024 * 1024


def resident_mib() -> tuple[float, float]:
    """Resident memory now and at its highest so far, in MiB: VmRSS and VmHWM of /proc/self/status."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, highest = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, highest
