"""A service, run by Jython, that keeps a state for each account, and changes them at random: accounts.py ACCOUNTS CHANGES [array].

The states, numbers below 100, are in a list, or with ``array`` in an array of machine numbers.
"""

import random
import sys
from array import array

from java.lang import System
from own_figures import watch

accounts, changes = int(sys.argv[1]), int(sys.argv[2])
random.seed(1)
states = [number % 100 for number in range(accounts)]
if "array" in sys.argv[3:]:
    states = array("i", states)
places = array("i", [random.randrange(accounts) for _ in range(1 << 16)])


def work():
    """Change states."""
    for change in xrange(changes):  # noqa: F821, this is Python 2.7
        account = (places[change & 0xFFFF] + change) % accounts
        states[account] = (states[account] + 1) % 100


System.gc()
watch(work)
