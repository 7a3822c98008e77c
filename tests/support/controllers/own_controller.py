"""A controller in the lab's process that a file names: own_controller:Flooding."""

from twinnet.control import ConnectedSwitch, Controller


class Flooding(Controller):
    """Floods everything."""

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Flood."""
        switch.install("actions=flood")


class NoController:
    """Is none."""
