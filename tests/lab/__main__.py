"""Run the fault lab by hand: `python -m tests.lab --port 9900`."""

from __future__ import annotations

import argparse
import threading

from tests.lab import SCENARIOS, Lab, Received
from tests.lab.server import BASES

ABOUT = "A provider on loopback that speaks the protocols of all vendors and plays faults."


def main() -> None:
    scenarios = "\n".join(f"  {scenario.name:22} {scenario.meaning}" for scenario in SCENARIOS.values())
    usage = (
        "Ask for a scenario with the model name fault:NAME or fault:NAME:key=value,key=value.\n\nplays:\n" + scenarios
    )
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab",
        description=ABOUT,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=9900, help="where to listen (default 9900)")
    parser.add_argument("--host", default="127.0.0.1", help="on which address (default 127.0.0.1)")
    parser.add_argument(
        "--script", action="append", default=[], metavar="NAME=STEP[;STEP…]", help="what a provider of that name plays"
    )
    options = parser.parse_args()
    script = {name: steps.split(";") for name, _, steps in (entry.partition("=") for entry in options.script)}
    with Lab(script, port=options.port, host=options.host, on_request=show) as lab:
        for protocol in BASES:
            print(f"{protocol:10} {lab.url(protocol)}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped")


def show(received: Received) -> None:
    print(f"{received.protocol:10} {received.path}  {received.heard.model}  → {received.scenario}", flush=True)


if __name__ == "__main__":
    main()
