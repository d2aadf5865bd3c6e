"""`python -m routing_admin`: the program `routing-admin`."""

import sys

from routing_admin.program import main

if __name__ == "__main__":
    main(sys.argv[1:])
