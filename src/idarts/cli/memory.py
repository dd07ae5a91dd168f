"""Memory that a command's tensors free stays with the process, for the next ones."""

import ctypes
import os
from contextlib import suppress

# By default glibc returns large blocks to the system when they are freed, and the system clears each page of them when
# they come back: a quarter of the time of a Hessian-vector product of a small supernet.
SETTINGS = {
    "MALLOC_TRIM_THRESHOLD_": (-1, 2**30),  # the number of the setting in malloc.h; bytes
    "MALLOC_MMAP_THRESHOLD_": (-3, 2**25),  # the greatest value that all versions of glibc accept
}


def keep_freed_memory() -> None:
    """Let glibc keep freed memory, in this process and those that it starts; no effect with other C libraries.

    What the user has set for glibc's allocator stays as it is.
    """
    if "GLIBC_TUNABLES" in os.environ or any(name in os.environ for name in SETTINGS):
        return
    with suppress(OSError, AttributeError, TypeError):  # no C library by this way (Windows), or one without `mallopt`
        set_option = ctypes.CDLL(None).mallopt
        for name, (number, value) in SETTINGS.items():
            set_option(number, value)
            os.environ[name] = str(value)
