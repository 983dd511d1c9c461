"""A service, run by Jython, that answers requests and keeps each session until a number of later ones: sessions.py REQUESTS SESSIONS."""

import sys

from own_figures import watch

requests, remembered = int(sys.argv[1]), int(sys.argv[2])
sessions = [None] * remembered


def serve():
    """Answer all requests."""
    for request in xrange(requests):  # noqa: F821, this is Python 2.7
        # Forgets the session that was here.
        sessions[request % remembered] = {
            "user": "user %d" % request,
            "page": "/%d" % (request % 97),
            "seen": [request],
        }


watch(serve)
