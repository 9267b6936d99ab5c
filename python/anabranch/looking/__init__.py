"""The input of ``anabranch explain``, ``draw``, ``profile`` and ``tune``: saved models, and the training steps of a
user's script."""
