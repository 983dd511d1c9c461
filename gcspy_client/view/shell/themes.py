"""The themes in the View menu."""

from __future__ import annotations

from functools import partial

from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action
from gcspy_client.view.part import Part

__all__ = ["ThemePart"]

_THEMES = (
    ("view.theme-system", "&Follow the system", None),
    ("view.theme-dark", "Da&rk", Theme.DARK),
    ("view.theme-light", "L&ight", Theme.LIGHT),
    ("view.theme-contrast-dark", "High contrast, dar&k", Theme.CONTRAST_DARK),
    ("view.theme-contrast-light", "High contrast, li&ght", Theme.CONTRAST_LIGHT),
)


class ThemePart(Part):
    """The choice of the theme."""

    def actions(self) -> tuple[Action, ...]:
        """An action for each theme."""
        appearance = self._desk.appearance
        return tuple(
            Action(
                name=name,
                menu="&View",
                text=text,
                run=partial(appearance.choose, theme),
                checked=partial(appearance.is_chosen, theme),
                begins_group=theme is None,
            )
            for name, text, theme in _THEMES
        )
