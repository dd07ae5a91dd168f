"""Pickles that run code where anything may run, for the tests of everything that reads pickles."""

import os
import pickle


class Command:
    """Pickled, it is a call of a function with arguments."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def attacks(mark):
    """Pickles that would create the file `mark` if anything in them ran, and the name for which each is refused."""
    shell = f"touch {mark}"
    text = shell.encode()
    short = b"\x8c" + bytes([len(text)]) + text
    return {
        "GLOBAL": (b"cos\nsystem\n(S'" + text + b"'\ntR.", "os.system"),
        "INST": (b"(S'" + text + b"'\nios\nsystem\n.", "os.system"),
        "OBJ": (b"(cos\nsystem\nS'" + text + b"'\no.", "os.system"),
        "STACK_GLOBAL": (b"\x80\x04\x8c\x02os\x8c\x06system\x93" + short + b"\x85R.", "os.system"),
        "REDUCE": (pickle.dumps(Command(os.system, shell), protocol=2), f"{os.name}.system"),
        "nested": (pickle.dumps({"200": [{"x": Command(os.system, shell)}]}, protocol=4), f"{os.name}.system"),
        "eval": (pickle.dumps(Command(eval, f"__import__('os').system({shell!r})")), "builtins.eval"),
        "getattr": (b"cbuiltins\ngetattr\n.", "builtins.getattr"),
        "dotted": (b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.__init__\x93.", "collections.OrderedDict.__init__"),
        "runstring": (b"cnumpy.testing._private.utils\nrunstring\n.", "numpy.testing._private.utils.runstring"),
        "torch": (b"ctorch.hub\nload\n.", "torch.hub.load"),
    }


NAMES = tuple(attacks(""))
HARMLESS = ("getattr", "dotted", "runstring", "torch")  # they only name what no official file does
