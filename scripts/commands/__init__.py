"""The commands of :mod:`scripts.cli`, one a module, each with its click command as ``command``."""
