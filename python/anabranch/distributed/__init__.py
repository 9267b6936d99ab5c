"""Starting the processes of a job by the commands of ``paddle.distributed``."""
