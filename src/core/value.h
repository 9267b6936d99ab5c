// The value of a variable at run time: nothing yet, a tensor, sparse rows, an array of tensors, or an opaque object
// (reader, saved frame of a sub-block). Plans keep pointers to Values, so a Value never moves.
#pragma once
#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/run_gate.h"
#include "core/selected_rows.h"
#include "core/tensor.h"

namespace anabranch {

// Fluid's VarType.Type numbers of the non-element types.
enum class VarKind : int32_t {
  kLoDTensor = 7,
  kSelectedRows = 8,
  kFeedMinibatch = 9,
  kFetchList = 10,
  kStepScopes = 11,
  kLoDRankTable = 12,
  kLoDTensorArray = 13,
  kPlaceList = 14,
  kReader = 15,
  kRaw = 17,
  kTuple = 18,
};
const char* var_kind_name(VarKind kind);  // "LOD_TENSOR"

using TensorArray = std::vector<Tensor>;

// A step touches thousands of them, a few fields each: aligned so that the fields of a tensor that kernels read
// (memory, count, dtype) share a cache line with the kind of the value.
class alignas(64) Value {
 public:
  Value() = default;
  explicit Value(std::shared_ptr<RunGate> gate) : gate_(std::move(gate)) {}
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  template <class T> bool is() const { return std::holds_alternative<Stored<T>>(held_); }
  bool empty() const { return is<std::monostate>(); }
  // Holds a value that an op may read: an initialized tensor, or anything that is not a tensor.
  bool initialized() const;

  // The held T; an empty or other Value becomes a fresh T first.
  template <class T> T& as() {
    if (auto* p = get<T>()) [[likely]]
      return *p;
    return fresh<T>();
  }
  // Stands for every argument that an op does not have: it holds nothing, and writing to it is an error.
  static Value* nothing() { return &nothing_; }
  // The held T, or null.
  template <class T> const T* get() const { return const_cast<Value*>(this)->get<T>(); }
  template <class T> T* get() {
    auto* p = std::get_if<Stored<T>>(&held_);
    if constexpr (std::is_same_v<T, SelectedRows>) {
      return p ? p->get() : nullptr;
    } else {
      return p;
    }
  }

  const Tensor& tensor() const {
    if (auto* p = std::get_if<Tensor>(&held_)) [[likely]]
      return *p;
    wrong_kind("a tensor");  // NOLINT(clang-analyzer-core.CallAndMessage): it thinks that &held_ may be null
  }
  const SelectedRows& rows() const {
    if (auto* p = get<SelectedRows>()) [[likely]]
      return *p;
    wrong_kind("sparse rows");  // NOLINT(clang-analyzer-core.CallAndMessage): likewise
  }
  void clear() { held_ = std::monostate{}; }
  // Deep, except for opaque objects and for the tensors of arrays, which are shared: to change one, allocate new memory
  // first (Tensor::is_shared).
  void copy_from(const Value& other);

  // Increased by every writer outside a plan (set, load, another executor's run): executors that hold copies of this
  // value compare it to see whether theirs are outdated.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void touch() { version_.store(version() + 1, std::memory_order_relaxed); }  // writers are serialized by the gate

  // The gate for changes from outside while steps may use this value; null: no other thread sees it.
  const std::shared_ptr<RunGate>& gate() const { return gate_; }

 private:
  [[noreturn]] void wrong_kind(const char* needed) const;
  [[noreturn]] static void write_to_nothing();
  template <class T> [[gnu::noinline]] T& fresh() {
    if (this == nothing()) write_to_nothing();
    if constexpr (std::is_same_v<T, SelectedRows>) {
      return *held_.emplace<Stored<T>>(std::make_unique<T>());
    } else {
      return held_.emplace<T>();
    }
  }

  // Sparse rows are larger than a tensor and rare, so they are allocated separately.
  template <class T>
  using Stored = std::conditional_t<std::is_same_v<T, SelectedRows>, std::unique_ptr<SelectedRows>, T>;

  static Value nothing_;

  std::atomic<uint64_t> version_{0};
  std::shared_ptr<RunGate> gate_;
  std::variant<std::monostate, Tensor, std::unique_ptr<SelectedRows>, TensorArray, std::shared_ptr<void>> held_;
};
static_assert(sizeof(Value) == 192);

// Signature of a value for code that prepares to work on it: kind, shape, dtype, place, LoD and whether there is
// memory.
class Form {
 public:
  Form() = default;
  explicit Form(const Value& value);
  bool is_that_of(const Value& value) const {
    const Tensor* t = value.get<Tensor>();
    if (!t || !is_tensor_) return is_that_of_no_tensor(value);
    return has_memory_ == (t->raw() != nullptr) && kind_ == t->kind() && shape_ == t->shape() &&
           (lod_ == t->lod_ref() || same_lod(t->lod_ref()));
  }

 private:
  bool is_that_of_no_tensor(const Value& value) const;
  bool same_lod(const LoDRef& lod) const { return lod_ && lod && *lod_ == *lod; }

  bool is_tensor_ = false, has_memory_ = false, seen_ = false;
  Shape shape_;  // of sparse rows: [height, ...]
  Kind kind_;
  LoDRef lod_;
};

}  // namespace anabranch
