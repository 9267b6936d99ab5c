"""Input of programs: arrays, generators and files."""
