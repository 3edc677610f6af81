"""The parts of gateways.py."""
