"""`python -m headatlas`, the same as `headatlas`."""

from headatlas.cli import main

main()
