"""`eprof`, and `python -m eprof`."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """The command line. Whoever presses Ctrl-C before it is there has seen nothing, and sees nothing: 130.

    What measures Python from inside (cProfile) starts `eprof.cli.main`, which ends as Python does.
    """
    gc.set_threshold(100_000)  # a small report makes fewer objects that last
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
