#include "core/dtype.h"

namespace anabranch {

size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8: return 1;
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16: return 2;
    case DType::kInt32:
    case DType::kFloat32: return 4;
    case DType::kInt64:
    case DType::kFloat64: return 8;
  }
  AB_THROW(InvalidArgument, "{} is not an element type", static_cast<int>(dtype));
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "bool";
    case DType::kInt16: return "int16";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kFloat16: return "float16";
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kUInt8: return "uint8";
    case DType::kInt8: return "int8";
    case DType::kBFloat16: return "bfloat16";
  }
  return "unknown";
}

bool dtype_is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

DType dtype_from_number(int64_t number) {
  const bool known = (number >= 0 && number <= 6) || (number >= 20 && number <= 22);
  AB_CHECK(known, InvalidArgument, "the element type must be 0 to 6 or 20 to 22, got {}", number);
  return static_cast<DType>(number);
}

}  // namespace anabranch
