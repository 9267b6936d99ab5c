"""Helpers of the transpilers that Fluid programs import."""
from .checkport import wait_server_ready as wait_server_ready
