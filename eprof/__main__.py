"""`eprof`, and `python -m eprof`."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """The command line. Whoever presses Ctrl-C before it is there has seen nothing, and sees nothing: 130.

    What measures Python from inside (cProfile) starts `eprof.cli.main`, which ends as Python does.
    """
    gc.set_threshold(1_000_000)  # a report of thousands of kernels makes fewer objects, and no garbage worth a search
    try:
        from eprof.cli import end_at_once
        from eprof.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as end:
        end_at_once(int(end.code or 0))


# A guard: processes that read logs import this module again.
if __name__ == "__main__":
    main()
