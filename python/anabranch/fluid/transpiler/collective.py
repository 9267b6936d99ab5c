"""placeholder"""
def transpile_collective(*a): raise NotImplementedError
def transpile_rings(*a): raise NotImplementedError
