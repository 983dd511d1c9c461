r"""A mailing whose templates are made for each customer, with a Jinja environment that caches all of them.

Cause: `Environment(cache_size=-1)` keeps every compiled template
Holder: __main__\.ENVIRONMENT\.cache
"""

from __future__ import annotations

from jinja2 import Environment, FunctionLoader

from benchmarks.leaks.pace import growing


def source_of(name: str) -> str:
    """Return the source of a template."""
    return f"Dear {name}, {{% for line in lines %}}{{{{ line }}}} {{% endfor %}}"


ENVIRONMENT = Environment(loader=FunctionLoader(source_of), cache_size=-1, autoescape=True)


def main() -> None:
    """Write to customers."""
    for customer in growing(check_every=10):
        ENVIRONMENT.get_template(f"customer {customer}").render(lines=["one", "two"])


if __name__ == "__main__":
    main()
