"""Text from files and folders on a terminal."""


def printable(text: str) -> str:
    r"""Text without control characters, which a terminal would obey: they are shown as escapes.

    >>> printable("cat \x1b[31m\u202e")
    'cat \\x1b[31m\\u202e'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
