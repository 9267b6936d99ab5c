"""``anabranch serve``: a saved model over HTTP. Needs the extra ``anabranch[serve]``."""
