"""A stand-in for perf: runs the program as perf does, then replays rows. Options, exit codes and messages as of 6.1.

STAND_IN_PERF: what goes wrong, if anything. STAND_IN_CORES, STAND_IN_SOCKETS: the rows of `perf stat` and of `perf stat -a`.
"""

import os
import sys

EVENTS = "cycles instructions fp_arith_inst_retired.scalar_double fp_arith_inst_retired.128b_packed_double"
EVENTS += " fp_arith_inst_retired.256b_packed_double fp_arith_inst_retired.512b_packed_double"
EVENTS += " power/energy-pkg/ power/energy-ram/ uncore_imc_0/cas_count_read/ uncore_imc_0/cas_count_write/"
LOCKED = """Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
"""
wrong = os.environ.get("STAND_IN_PERF", "")
words = sys.argv[1:]
if words == ["--version"]:
    print("perf version 6.1.187")
    sys.exit()
if words == ["list", "--raw-dump"]:
    print(EVENTS, "sched:sched_switch")
    sys.exit()
assert words.pop(0) == "stat", words
options = {}
while words[0] != "--" and words[0].startswith("-"):
    word = words.pop(0)
    options[word[:2]] = word[2:] or (True if word == "-a" else words.pop(0))
if words[0] == "--":
    words.pop(0)
if wrong == "paranoid" or (wrong == "no-sockets" and "-a" in options):
    sys.exit(LOCKED)
child = os.fork()
if not child:
    os.execvp(words[0], words)
status = os.waitpid(child, 0)[1]
if wrong == "lost" and "-o" in options:
    sys.exit("perf: Segmentation fault")
out = os.fdopen(os.open(options["-o"], os.O_CREAT | os.O_WRONLY), "w") if "-o" in options else sys.stderr
print("# started on Mon Nov 23 06:00:00 2026\n", file=out)
if "-o" not in options:
    value = {"no-counters": "<not supported>"}.get(wrong, "1")
    print(f"{value};;{options['-e'].removesuffix(':u')};0;100.00;;", file=out)
else:
    print(os.environ["STAND_IN_SOCKETS" if "-a" in options else "STAND_IN_CORES"], file=out)
if os.WIFSIGNALED(status):
    print(f"{words[0]}: Killed", file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 0)
