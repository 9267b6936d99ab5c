"""The passes that rewrite the graph of a program for quantization."""
from .activations import AddQuantDequantPass
from .freeze import QuantizationFreezePass
from .integers import ConvertToInt8Pass, TransformForMobilePass
from .out_scales import OutScaleForInferencePass, OutScaleForTrainingPass
from .tables import WITH_OUT_SCALE
from .transform import QuantizationTransformPass

__all__ = ["QuantizationTransformPass", "QuantizationFreezePass", "ConvertToInt8Pass", "TransformForMobilePass",
           "OutScaleForTrainingPass", "OutScaleForInferencePass", "AddQuantDequantPass"]

_out_scale_op_list = list(WITH_OUT_SCALE)
