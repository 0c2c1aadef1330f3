"""Every guard weakened in turn: a weakened guard that no test notices is a guard that nothing holds in place."""
