"""Fluid 1.8.5 has this module, ``paddle.regularizer``, without a name: regularizers are in ``fluid.regularizer``."""
