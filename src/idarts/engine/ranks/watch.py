"""A watch over ranks: one that is frozen ends the job on all of them, also while the others wait for its files.

Every rank counts in the store where ranks meet. A rank that works, however long, counts on; one that is stopped, hangs
in a driver or has lost its machine does not.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

BEAT = 2.0  # seconds between two counts
_DONE = b"done"
_LEAVING = 5.0  # seconds to leave, after the store has gone at the regular end of a job


@contextmanager
def watched(store: Any, number: int, size: int, patience: timedelta) -> Iterator[None]:
    """End this process if another rank does not count for so long. A thread uses the `store`: pass one for it alone."""
    leaving = threading.Event()
    arguments = (store, number, size, patience.total_seconds(), leaving)
    thread = threading.Thread(target=_watch, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        leaving.set()
        thread.join(timeout=2 * BEAT)


def _watch(store: Any, number: int, size: int, patience: float, leaving: threading.Event) -> None:
    others = [other for other in range(size) if other != number]
    before, count = time.monotonic(), 0
    seen, changed = dict.fromkeys(others, b""), dict.fromkeys(others, before)
    while not leaving.wait(BEAT):
        now, count = time.monotonic(), count + 1
        if now - before > patience / 2:  # this process itself was stopped, and perhaps the others with it
            changed = dict.fromkeys(others, now)
        before = now
        try:
            store.set(_key(number), str(count))
            for other in others:
                beat = store.get(_key(other)) if store.check([_key(other)]) else b""
                if beat != seen[other] or beat == _DONE:
                    seen[other], changed[other] = beat, now
        except RuntimeError:  # the store is in torchrun or in the first rank
            if not leaving.wait(_LEAVING):
                _end(f"rank {number} of {size} lost the process that started the job")
            return
        silent = [other for other in others if now - changed[other] > patience]
        if silent:
            _end(f"rank {silent[0]} of {size} has not answered for {patience:.0f} s")
    try:
        store.set(_key(number), _DONE.decode())
    except RuntimeError:
        return


def _key(number: int) -> str:
    return f"beat {number}"


def _end(reason: str) -> None:
    """The main thread may wait in a collective, which cannot be interrupted; a kill at any moment is safe."""
    line = f"idarts: {reason}, so the job ends; the last checkpoint is intact: continue with --resume\n"
    os.write(2, line.encode())
    os._exit(1)
