"""Run the program `routing-admin` as `python -m routing_admin`."""

import sys

from routing_admin.program import main

if __name__ == "__main__":
    main(sys.argv[1:])
