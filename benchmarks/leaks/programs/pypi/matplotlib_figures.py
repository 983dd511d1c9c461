r"""A report that draws a chart for each customer with pyplot, and does not close the figures.

Cause: `pyplot` keeps each figure until `plt.close`
Holder: matplotlib\._pylab_helpers\.Gcf\.figs
"""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks.leaks.pace import growing


def chart(customer: int) -> bytes:
    """Draw a chart, and return it as PNG."""
    figure, axes = plt.subplots()
    axes.plot(range(100), [customer * day for day in range(100)])
    picture = io.BytesIO()
    figure.savefig(picture)
    return picture.getvalue()


def main() -> None:
    """Draw charts, without the warning that there are many."""
    plt.switch_backend("Agg")
    mpl.rcParams["figure.max_open_warning"] = 0
    for customer in growing():
        chart(customer)


if __name__ == "__main__":
    main()
