"""The program `orrery` of a wheel: its words are handed on to the executable that lies in this package."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "orrery")
    if not os.access(program, os.X_OK):
        sys.exit("orrery: this package was installed without its program; `pip install --force-reinstall orrery` brings it")
    os.execv(program, ["orrery"] + sys.argv[1:])


if __name__ == "__main__":
    main()
