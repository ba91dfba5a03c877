"""`eprof`, and `python -m eprof`."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """The command line. Whoever presses Ctrl-C before it is there has seen nothing, and sees nothing: 130."""
    gc.set_threshold(100_000)  # a small report makes fewer objects that last
    try:
        from eprof.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # What is left ends with the process: to look it through for garbage takes a tenth of a small report's time.
        gc.freeze()


# A guard: processes that read logs import this module again.
if __name__ == "__main__":
    main()
