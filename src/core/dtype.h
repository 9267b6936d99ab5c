// Element types. The numbers are those of Fluid's VarType.Type: they are in saved models.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace anabranch {

enum class DType : int32_t {
  kBool = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
  kUInt8 = 20,
  kInt8 = 21,
  kBFloat16 = 22,
};

// Storage only: the CPU converts 16-bit floats and does no arithmetic on them.
struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};

size_t dtype_size(DType dtype);       // bytes of one element
const char* dtype_name(DType dtype);  // "float32", numpy's spelling
bool dtype_is_float(DType dtype);
DType dtype_from_number(int64_t number);  // InvalidArgument if it is not an element type

template <class T> struct DTypeOf;
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::kInt16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kInt32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kInt64; };
template <> struct DTypeOf<float16> { static constexpr DType value = DType::kFloat16; };
template <> struct DTypeOf<bfloat16> { static constexpr DType value = DType::kBFloat16; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kUInt8; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::kInt8; };

template <class T> inline constexpr DType dtype_of = DTypeOf<T>::value;

template <class T> struct TypeTag { using type = T; };

// Calls fn(TypeTag<T>{}) with the C++ type of an arithmetic dtype (all but the 16-bit floats).
template <class Fn> decltype(auto) visit_dtype(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kBool: return fn(TypeTag<bool>{});  // NOLINT(bugprone-branch-clone): fn may ignore its argument
    case DType::kInt16: return fn(TypeTag<int16_t>{});
    case DType::kInt32: return fn(TypeTag<int32_t>{});
    case DType::kInt64: return fn(TypeTag<int64_t>{});
    case DType::kFloat32: return fn(TypeTag<float>{});
    case DType::kFloat64: return fn(TypeTag<double>{});
    case DType::kUInt8: return fn(TypeTag<uint8_t>{});
    case DType::kInt8: return fn(TypeTag<int8_t>{});
    case DType::kFloat16:
    case DType::kBFloat16: break;
  }
  AB_THROW(Unsupported, "no arithmetic on {}", dtype_name(dtype));
}

}  // namespace anabranch
