// The basic types of device kernels. Included by .cu files, which nvcc compiles for a GPU and g++ (-x c++
// -DAB_HOST_KERNELS) for the simulated device, and by the engine, which only fills the structs. Nothing here may
// include base/error.h: nvcc cannot compile fmt.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/plugin_api.h"
#include "ops/device/half.h"

#if defined(__CUDACC__) && defined(AB_HOST_KERNELS)
#error "AB_HOST_KERNELS is for the host build alone"
#endif

namespace anabranch::device {

#if defined(AB_HOST_KERNELS)
// Defined by the runner of host kernels: the host address of the range [address, address + bytes) of the device that
// the kernel runs on. It records the access and throws if the range is not within one live block.
void* host_address(const void* address, size_t bytes, ab_access access);
#endif

// An operand in kernel arguments: a device address and the bytes that the kernel may touch there; all bytes of a
// DeviceOut count as written. Null and 0 if an optional operand is missing.
// get() is called once per operand in run(), never per element; kernels that read tables of DevicePtr in device memory
// call it where they read one. On a GPU it costs nothing.
template <bool kWrites> struct DevicePtr {
  using Address = std::conditional_t<kWrites, void*, const void*>;
  template <class T> using Pointer = std::conditional_t<kWrites, T*, const T*>;

  Address address;
  uint64_t bytes;

  AB_HD bool there() const { return address != nullptr; }
  template <class T> AB_HD int64_t count() const { return static_cast<int64_t>(bytes / sizeof(T)); }
#if defined(__CUDACC__)
  template <class T> AB_HD Pointer<T> get() const { return static_cast<Pointer<T>>(address); }
#elif defined(AB_HOST_KERNELS)
  template <class T> Pointer<T> get() const {
    return address ? static_cast<Pointer<T>>(host_address(address, bytes, kWrites ? AB_READ_WRITE : AB_READ)) : nullptr;
  }
#endif
};
using DeviceIn = DevicePtr<false>;
using DeviceOut = DevicePtr<true>;  // also for operands that are read and written
static_assert(sizeof(DeviceIn) == 16 && std::is_trivially_copyable_v<DeviceIn>);

// The type in which T is computed: loads and stores convert.
template <class T> struct ComputeOf { using type = T; };
template <> struct ComputeOf<half> { using type = float; };
template <> struct ComputeOf<bfloat16> { using type = float; };
template <class T> using Compute = typename ComputeOf<T>::type;

// a / b for non-negative numbers: a GPU divides 32-bit integers several times as fast.
AB_HD inline int64_t quotient(int64_t a, int64_t b) {
  const bool narrow = (static_cast<uint64_t>(a | b) >> 32) == 0;
  return narrow ? static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b)) : a / b;
}
AB_HD inline int64_t remainder(int64_t a, int64_t b) { return a - quotient(a, b) * b; }

template <class T> AB_HD Compute<T> load(const T& x) { return static_cast<Compute<T>>(x); }
template <class T> AB_HD void store(T* to, Compute<T> x) { *to = static_cast<T>(x); }

// The last part of a kernel's key.
template <class T> inline constexpr const char* type_name = nullptr;
template <> inline constexpr const char* type_name<bool> = "bool";
template <> inline constexpr const char* type_name<int8_t> = "i8";
template <> inline constexpr const char* type_name<uint8_t> = "u8";
template <> inline constexpr const char* type_name<int16_t> = "i16";
template <> inline constexpr const char* type_name<int32_t> = "i32";
template <> inline constexpr const char* type_name<int64_t> = "i64";
template <> inline constexpr const char* type_name<half> = "f16";
template <> inline constexpr const char* type_name<bfloat16> = "bf16";
template <> inline constexpr const char* type_name<float> = "f32";
template <> inline constexpr const char* type_name<double> = "f64";

// Reports invalid values, such as ids, before the kernel continues with a valid one. The status word holds all ones at
// the start of a run and then the smallest report, so it does not depend on which thread came first: 20 bits of the
// node, 4 of the code, 40 of a detail (the position or the value; the op's text knows which).
struct FaultSink {
  DeviceOut word;  // one uint64_t; missing: reports are discarded
  uint32_t node;
  uint32_t reserved;
};

inline constexpr uint64_t kNoFault = ~uint64_t{0};

AB_HD inline uint64_t fault_status(uint32_t node, uint32_t code, int64_t detail) {
  return (uint64_t{node & 0xfffffu} << 44) | (uint64_t{code & 0xfu} << 40) |
         (static_cast<uint64_t>(detail) & ((uint64_t{1} << 40) - 1));
}

struct Fault {  // a decoded status word
  uint32_t node, code;
  int64_t detail;
};

inline Fault read_fault(uint64_t word) {
  const int64_t detail = static_cast<int64_t>(word << 24) >> 24;  // sign-extended
  return {static_cast<uint32_t>(word >> 44), static_cast<uint32_t>(word >> 40) & 0xfu, detail};
}

#if defined(__CUDACC__) || defined(AB_HOST_KERNELS)
// A FaultSink with its pointer resolved, for kernel bodies.
struct FaultReport {
  uint64_t* word;
  uint32_t node;

  explicit FaultReport(const FaultSink& sink) : word(word_of(sink)), node(sink.node) {}
  AB_HD void operator()(uint32_t code, int64_t detail) const {
    if (!word) return;
    const uint64_t found = fault_status(node, code, detail);
#if defined(__CUDA_ARCH__)
    atomicMin(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(found));
#else
    if (found < *word) *word = found;
#endif
  }

 private:
  static uint64_t* word_of(const FaultSink& sink) {
    if (!sink.word.there()) return nullptr;
#if defined(AB_HOST_KERNELS)
    return static_cast<uint64_t*>(host_address(sink.word.address, sizeof(uint64_t), AB_ACCUMULATE));
#else
    return sink.word.get<uint64_t>();
#endif
  }
};
#endif

}  // namespace anabranch::device
