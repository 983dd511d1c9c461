r"""A server that counts its requests by user, as prometheus_client's documentation warns not to do.

Cause: a metric keeps a child for each value of its labels, and user numbers have no bound
Holder: __main__\.REQUESTS\._metrics
"""

from __future__ import annotations

from prometheus_client import Counter

from benchmarks.leaks.pace import growing

REQUESTS = Counter("requests", "Requests that were served", ["user", "path"])


def main() -> None:
    """Count requests."""
    for user in growing(check_every=50):
        REQUESTS.labels(user=f"user-{user}", path="/cart").inc()


if __name__ == "__main__":
    main()
