"""Measurements: ratios within one run, since machines are noisy. `python -m bench NAME [options]`."""
