"""The parts of matplotlib that the leaking programs use."""

rcParams: dict[str, object]
