"""Helpers of the transpilers that Fluid programs reach for."""
from .checkport import wait_server_ready as wait_server_ready
