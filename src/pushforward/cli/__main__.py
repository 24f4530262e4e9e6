"""`python -m pushforward.cli`: the command line where its script is not on the path."""

from pushforward.cli.app import main

main()
