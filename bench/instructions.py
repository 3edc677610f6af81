#!/usr/bin/env python3
"""Instructions that koboshi spends on one request, counted by callgrind: they repeat, whatever else the machine does.

    bench/instructions.py BIN                 all four dialects, whole answers and streams
    bench/instructions.py BIN OTHER           two programs, and the ratio of their figures
    bench/instructions.py --functions BIN     also the functions that spend most, for a whole answer of the chat dialect

User code only: what the kernel does for a request is not counted. And only the thread that serves the connection: what others do 250 ms by 250 ms
(the store, the journal) depends on how slow valgrind is, and is nothing for each request of a busy gateway. It wants `valgrind`.
"""
import argparse
import http.client
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gateways import programs  # noqa: E402
from rig import machine as here, peers  # noqa: E402
from rig.dialects import DIALECTS  # noqa: E402

WARM, COUNTED = 200, 500


class UnderCallgrind(peers.Koboshi):
    """koboshi as valgrind runs it. The variable keeps it from starting itself again, which callgrind would not follow."""

    def prepare(self, folder, port, mock, what, probes, mood):
        command, _ = super().prepare(folder, port, mock, what, probes, mood)
        self.folder = folder
        valgrind = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/counts", "--dump-instr=no"]
        return valgrind + command, {"MALLOC_MMAP_THRESHOLD_": "1048576", "MALLOC_TRIM_THRESHOLD_": "8388608"}


class Connection(http.client.HTTPConnection):
    """Sends head and body with one write: else it is chance whether the gateway wakes up for each of them."""

    head = None

    def send(self, data):
        if self.head is None:
            self.head = data
        else:
            whole, self.head = self.head + data, None
            super().send(whole)


def ask(connection, target, stream, count):
    """Sends requests one after the other."""
    dialect = target.dialect
    model = target.prefix + ("stamp-chunks200" if stream else "ok")
    path = dialect.url("", model, stream)
    body = dialect.request(model, stream).encode()
    for _ in range(count):
        connection.request("POST", path, body, {"content-type": "application/json", "authorization": f"Bearer {peers.KEY}"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"{dialect.name}: status {answer.status}")


def control(word, pid):
    subprocess.run(["callgrind_control", word, str(pid)], check=True, stdout=subprocess.DEVNULL)


def counted(folder):
    """The total of the busiest thread in the newest dump, and its file."""
    dumps = {}
    for file in folder.glob("counts.*-*"):
        total = re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.M)
        dumps.setdefault(int(file.suffix[1:].split("-")[0]), []).append((int(total[1]) if total else 0, file))
    return max(dumps[max(dumps)])


def count(program, mock_program, functions):
    told = {}
    with here.Machine(False) as machine:
        mock = here.Mock(machine, mock_program)
        gateway = UnderCallgrind(program)
        gateway.install()
        target = gateway.start(machine, mock, "dialects")
        for dialect in DIALECTS:
            target.dialect, target.prefix = dialect, f"to-{dialect.name}-"
            for stream in (False, True):
                here.say(f"{program}: {dialect.name}{', streamed' if stream else ''}")
                number = COUNTED // 10 if stream else COUNTED
                connection = Connection("127.0.0.1", target.port, timeout=120)
                ask(connection, target, stream, max(number // 2, 20) if stream else WARM)
                # A dump sets the counters to zero.
                control("-d", target.process.pid)
                ask(connection, target, stream, number)
                control("-d", target.process.pid)
                connection.close()
                total, file = counted(gateway.folder)
                told[dialect.name, stream] = total / number
                if functions and dialect.name == "chat" and not stream:
                    shown = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", str(file)], capture_output=True, text=True, check=True)
                    print("\n".join(shown.stdout.splitlines()[:110]))
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="BIN")
    parser.add_argument("--functions", action="store_true", help="the functions that spend most")
    args = parser.parse_args()
    peers.apt("valgrind", "valgrind")
    mock, _ = programs()
    all_counts = [count(os.path.abspath(program), mock, args.functions) for program in args.programs]
    print("| | " + " | ".join(pathlib.Path(program).name for program in args.programs) + (" | ratio |" if len(all_counts) > 1 else " |"))
    print("|---|" + "--:|" * (len(all_counts) + (len(all_counts) > 1)))
    for (dialect, stream), first in all_counts[0].items():
        row = [f"{counts[dialect, stream]:,.0f}" for counts in all_counts]
        if len(all_counts) > 1:
            row.append(f"{all_counts[1][dialect, stream] / first:.3f}")
        print(f"| {dialect}, {'200 pieces streamed' if stream else 'whole'} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
