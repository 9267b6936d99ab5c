// Integers wrap around, like those of NumPy. In C++ only unsigned ones may.
#pragma once
#include <cstdint>
#include <type_traits>

namespace anabranch {

// The type in which sums and products of T are computed before they are cast back to T.
template <class T> using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

}  // namespace anabranch
