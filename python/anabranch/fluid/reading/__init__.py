"""What programs read: arrays, generators and files on their way to a run."""
