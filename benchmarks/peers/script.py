"""The work as a script, for peers that run scripts."""

import sys

from benchmarks.peers.work import work

work(sys.argv[1])
