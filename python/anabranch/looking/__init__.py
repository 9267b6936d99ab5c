"""What the commands ``anabranch explain``, ``draw``, ``profile`` and ``tune`` look at: saved models, and the steps that
a script of the user makes."""
