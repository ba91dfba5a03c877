"""Show what is different from the golden documents, and rewrite them on purpose: see the package's docstring."""

import argparse
import sys

from . import CASES, __doc__, differences, document, golden, paths, rewrite

SHOWN = 40


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", choices=[[], *CASES], metavar="CASE", help="default: all")
    parser.add_argument("--rewrite", action="store_true", help="write those that are different anew")
    parser.add_argument("--all", action="store_true", help=f"show every field, not only the first {SHOWN} of each")
    options = parser.parse_args()
    different = 0
    for case in options.case or CASES:
        missing = [path.name for path in paths(case) if not path.exists()]
        if missing:
            print(f"{case}: passed over, without {', '.join(missing)}")
            continue
        new = document(case)
        lines = list(differences(golden(case), new))
        different += bool(lines)
        print(f"{case}: {len(lines) or 'no'} fields differ")
        shown = lines if options.all else lines[:SHOWN]
        print("".join(f"    {line[:400]}\n" for line in shown), end="")
        if len(lines) > len(shown):
            print(f"    and {len(lines) - len(shown)} more (--all)")
        if lines and options.rewrite:
            rewrite(case, new)
    return int(different and not options.rewrite)


sys.exit(main())
