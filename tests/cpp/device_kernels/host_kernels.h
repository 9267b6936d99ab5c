// Runs the host build of kernels for devices: operands lie in blocks that host_address() knows, a launch goes through
// the table by its key, as a plug-in's would.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/device/row_in_lanes.h"

namespace anabranch::device {

// Where operands lie in the meantime of one test. Bytes around an operand must not be touched.
class Blocks {
 public:
  static Blocks& all();
  void add(const void* begin, size_t bytes) { known_.push_back({static_cast<const char*>(begin), bytes}); }
  void remove(const void* begin) {
    std::erase_if(known_, [&](const Block& b) { return b.begin == static_cast<const char*>(begin); });
  }
  bool holds(const void* address, size_t bytes) const {
    const auto* from = static_cast<const char*>(address);
    for (const Block& b : known_) {
      if (from >= b.begin && from + bytes <= b.begin + b.bytes) return true;
    }
    return false;
  }

 private:
  struct Block {
    const char* begin;
    size_t bytes;
  };
  std::vector<Block> known_;
};

// A tensor on the device, of values given as double.
template <class T> class Array {
 public:
  explicit Array(size_t n) : data_(n + 1) { Blocks::all().add(data_.data(), n * sizeof(T)); }
  Array(const std::vector<double>& values) : Array(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) data_[i] = of(values[i]);
  }
  Array(const Array&) = delete;
  ~Array() { Blocks::all().remove(data_.data()); }

  size_t size() const { return data_.size() - 1; }
  DeviceIn in() const { return {data_.data(), size() * sizeof(T)}; }
  DeviceOut out() { return {data_.data(), size() * sizeof(T)}; }
  double operator[](size_t i) const { return number(data_[i]); }
  T& at(size_t i) { return data_[i]; }
  std::vector<double> values() const {
    std::vector<double> v(size());
    for (size_t i = 0; i < size(); ++i) v[i] = (*this)[i];
    return v;
  }
  static T of(double v) { return static_cast<T>(static_cast<Compute<T>>(v)); }
  static double number(T v) { return static_cast<double>(static_cast<Compute<T>>(v)); }

 private:
  // Not std::vector<bool>, and never empty: an operand of no elements has an address, too.
  struct Buffer {
    explicit Buffer(size_t n) : items(new T[n]()), count(n) {}
    ~Buffer() { delete[] items; }
    Buffer(const Buffer&) = delete;
    T& operator[](size_t i) { return items[i]; }
    const T& operator[](size_t i) const { return items[i]; }
    T* data() { return items; }
    const T* data() const { return items; }
    size_t size() const { return count; }
    T* items;
    size_t count;
  };
  Buffer data_;
};

// The launch of the kernel that ran last: rows and the lanes of each, or elements with one lane. Empty where no
// lanes can be simulated.
struct Launched {
  int64_t rows, lanes;
  bool operator==(const Launched&) const = default;
};
const std::vector<Launched>& last_launched();
// That it used this number of threads, one for each element or pack.
inline void expect_threads(int64_t count, const std::string& what) {
  for (const Launched& l : last_launched()) EXPECT_EQ(l, (Launched{count, 1})) << what;
}

// As a GPU does, in an order that --gtest_random_seed chooses with --gtest_shuffle.
int run_by_lanes(const ab_kernel_entry& kernel, Launch how, const void* args);

// Launches a kernel, with the workspace it asks for, which holds rubbish.
template <class Args> void launch(const std::string& key, const Args& args) {
  const ab_kernel kernel = find_kernel(key.c_str());
  ASSERT_NE(kernel, nullptr) << key;
  ASSERT_EQ(kernel->args_size, sizeof(Args)) << key;
  const size_t room = kernel->room ? kernel->room(&args) : 0;
  Array<uint8_t> workspace(room);
  for (size_t i = 0; i < room; ++i) workspace.at(i) = 0x7f;
  Launch how = {};
  if (room) how.workspace = workspace.out();
  ASSERT_EQ(run_by_lanes(*kernel, how, &args), 0) << key;
}

template <class T> std::string key_of(const std::string& stem) { return stem + "/" + type_name<T>; }

// How far results of T may be from those of float64: relative to the size of what was added up.
template <class T> double rounding() {
  if constexpr (std::is_same_v<T, double>) return 1e-12;
  if constexpr (std::is_same_v<T, float>) return 2e-6;
  return std::is_same_v<T, half> ? 2e-3 : 1.6e-2;
}

inline void expect_near(double got, double expected, double tolerance, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << ": " << got;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(got, expected) << what;
  } else {
    EXPECT_NEAR(got, expected, tolerance * (1 + std::abs(expected))) << what;
  }
}

template <class T>
void expect_all(const Array<T>& got, const std::vector<double>& expected, const std::string& what, double factor = 1) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double as_t = std::is_floating_point_v<T> ? expected[i] : Array<T>::number(Array<T>::of(expected[i]));
    expect_near(got[i], std::is_integral_v<T> ? as_t : expected[i], factor * rounding<T>(),
                what + " at " + std::to_string(i));
  }
}

// The lanes of a row in a kernel's first launch: 32 for rows that lanes hold, for any number of rows.
template <class T> void expect_lanes(int64_t rows, int64_t width) {
  const bool holds = by_share<T>(
                         width, [](auto) { return true; }, [] { return false; }) != 0;
  EXPECT_EQ(holds, sizeof(T) <= 4 && width <= 1024 && width % (sizeof(T) == 2 && width > 128 ? 8 : 4) == 0) << width;
  if (last_launched().empty()) return;
  EXPECT_EQ(last_launched()[0], (Launched{rows, holds || by_warps(rows, width) ? 32 : 256})) << width;
}

// Elements from this one on, which may lie where no pack starts.
template <class T> DeviceIn in_from(Array<T>& x, size_t first) {
  return {&x.at(first), (x.size() - first) * sizeof(T)};
}
template <class T> DeviceOut out_from(Array<T>& x, size_t first) {
  return {&x.at(first), (x.size() - first) * sizeof(T)};
}
template <class T> void expect_same_bits(Array<T>& got, Array<T>& expected, const std::string& what, size_t first = 0) {
  ASSERT_EQ(got.size(), expected.size() + first) << what;
  EXPECT_EQ(memcmp(&got.at(first), &expected.at(0), expected.size() * sizeof(T)), 0) << what;
}

// Values that T holds exactly, so that a reference starts from the same numbers.
template <class T> std::vector<double> held(std::vector<double> v) {
  for (double& x : v) x = Array<T>::number(Array<T>::of(x));
  return v;
}

inline std::vector<double> random_values(size_t n, double low, double high, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> v(n);
  for (double& x : v) x = draw(random);
  return v;
}

inline FaultSink sink_of(Array<int64_t>& word) {
  word.at(0) = static_cast<int64_t>(kNoFault);
  return {word.out(), 7, 0};
}
inline bool faulted(Array<int64_t>& word) { return static_cast<uint64_t>(word.at(0)) != kNoFault; }
inline Fault fault_of(Array<int64_t>& word) { return read_fault(static_cast<uint64_t>(word.at(0))); }

// Axes from extents, with the strides of each operand.
template <int kOperands>
Axes<kOperands> axes_of(std::vector<int64_t> extents, const std::vector<std::vector<int64_t>>& strides) {
  Axes<kOperands> axes = {};
  axes.rank = static_cast<int32_t>(extents.size());
  for (size_t a = 0; a < extents.size(); ++a) {
    axes.extent[a] = extents[a];
    for (size_t k = 0; k < kOperands; ++k) axes.stride[k][a] = strides[k][a];
  }
  return axes;
}

using Floats = ::testing::Types<float, double, half, bfloat16>;
using RealFloats = ::testing::Types<float, double>;

}  // namespace anabranch::device
