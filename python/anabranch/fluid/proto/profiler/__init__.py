"""The module of messages of Fluid's profiles."""
