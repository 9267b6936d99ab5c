// The definition of an op type: its schema (slots, attributes, documentation), its shape function, its gradient and its
// kernels. One AB_OP statement in one file of ops/ declares all of them; nothing else must be edited to add an op.
//
//   AB_OP(relu)
//       .doc("Out = max(X, 0), elementwise.").source("Nair & Hinton, ICML 2010")
//       .in("X", "[...] float").out("Out", "[...] as X").may_share("X", "Out")
//       .ignores({"use_mkldnn", "use_cudnn"}).traits(kRowWise | kElementwise)
//       .infer([](InferContext& c) { c.same_as("Out", "X"); })
//       .grad_reads({}, {"Out"})
//       .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { ... });
//   AB_GRAD(relu).doc("X@GRAD = Out@GRAD where Out > 0, else 0.").cpu<float, double>(...);
//
// Types, slots and attributes are Fluid's: they are in saved models. Declarations run before main(), in any order. The
// registry freezes at first use: gradient ops are completed from their forward ops (gradient.cc), and an op without
// documentation, shape function or kernel, or without a gradient or a reason for its absence, is refused.
#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "opdef/grad_context.h"
#include "opdef/infer_context.h"
#include "opdef/kernel_context.h"
#include "opdef/tile.h"
#include "opdef/traits.h"
#include "opdef/work_context.h"

namespace anabranch {

// The kinds of values of an input. Ops that accept sparse rows or anything check their inputs; all others see tensors
// only.
enum class Holds { kTensor, kTensorOrRows, kAnything };

struct SlotDef {
  std::string name, doc;
  bool list = false, optional = false, intermediate = false;
  Holds holds = Holds::kTensor;
  bool named_only = false;  // an output that programs of Fluid name and no kernel writes
};

struct AttrDef {
  std::string name, doc;
  AttrType type;
  Attr value;  // default; meaningless if the attribute is required
  bool required = false;
  std::function<void(const Attr&)> check;  // throws InvalidArgument; may be empty
};

// The inputs and outputs of a type's gradient op, in the forward op's slots.
struct GradReads {
  std::vector<std::string> ins, outs;  // inputs and outputs of the forward op that it reads
  std::vector<std::string> from;       // outputs whose gradients it reads; empty: all that are not intermediate
  std::vector<std::string> to;         // inputs whose gradients it computes; empty: all
};

// Names of slots in a declaration; they are copied before the statement ends.
class SlotNames {
 public:
  SlotNames() = default;
  SlotNames(std::initializer_list<std::string_view> names) : listed_(names.begin(), names.size()) {}
  SlotNames(const std::vector<std::string>& names) : held_(&names) {}  // NOLINT(google-explicit-constructor)
  std::vector<std::string> to_vector() const;

 private:
  std::span<const std::string_view> listed_;
  const std::vector<std::string>* held_ = nullptr;
};

// Functions without captures, declared by pointer: a std::function is then created in one place, not at each
// declaration.
template <class Fn, class Signature>
concept PointsAt = std::convertible_to<Fn, std::add_pointer_t<Signature>>;

// One factory for all dtypes it is declared for.
using DTypeFactory = std::function<Kernel(DType, const KernelArgs&)>;

// The forms of a default value.
template <class T>
using AttrValue = std::conditional_t<std::is_same_v<T, std::string>, std::string_view,
                                     std::conditional_t<std::is_class_v<T>, const T&, T>>;

class OpDef {
 public:
  explicit OpDef(std::string type) : type_(std::move(type)) {}

  // ---- declaration, chained
  OpDef& doc(std::string_view text);
  OpDef& source(std::string_view paper);
  OpDef& in(std::string_view name, std::string_view doc);
  OpDef& in_list(std::string_view name, std::string_view doc);
  OpDef& in_optional(std::string_view name, std::string_view doc);
  OpDef& in_optional_list(std::string_view name, std::string_view doc);
  OpDef& out(std::string_view name, std::string_view doc);
  OpDef& out_list(std::string_view name, std::string_view doc);
  OpDef& out_optional(std::string_view name, std::string_view doc);
  OpDef& out_optional_list(std::string_view name, std::string_view doc);
  OpDef& out_intermediate(std::string_view name, std::string_view doc);
  OpDef& takes(std::string_view in, Holds what);                       // of a declared input, or an inherited one
  OpDef& out_named_only(std::string_view name, std::string_view doc);  // may be missing; its variable is unchanged
  template <class T> OpDef& attr(std::string_view name, AttrValue<T> value, std::string_view doc);
  template <class T, class Check>
  OpDef& attr(std::string_view name, AttrValue<T> value, std::string_view doc, Check check) {
    return attr<T>(name, value, doc).template check_last<T>(std::move(check));
  }
  OpDef& required_attr(std::string_view name, AttrType type, std::string_view doc);
  // Attributes of Fluid that are accepted without effect: well-known ones by name (inert.cc), or with the op's default.
  OpDef& ignores(std::initializer_list<const char*> names);
  OpDef& ignores(const char* name, Attr value);
  // A part of a declaration that several ops share.
  template <class Part> OpDef& with(const Part& part) {
    part(*this);
    return *this;
  }
  // Slots, attributes, effects, traits, shape function, shared memory and dtype slot of another op, as declared so far.
  // Documentation, gradient and kernels are not copied.
  OpDef& like(const OpDef& other);
  OpDef& attrs_of(const OpDef& other);  // only the attributes, with their checks
  OpDef& may_share(std::string_view in,
                   std::string_view out);  // the output may take the input's memory at its last use
  // The output is the updated input: kind, shape, dtype and LoD stay. If both name one variable, it is changed in
  // place; any other op that writes a variable creates a new version of it. Slots X and XOut are such a pair by their
  // names.
  OpDef& updates(std::string_view in, std::string_view out);
  // If this attribute is true, the op does not update anything.
  OpDef& frozen_by(std::string_view attr);
  OpDef& effects(unsigned flags) {
    effects_ |= flags;
    return *this;
  }
  OpDef& shape_from(std::string_view in);  // values of this optional input, if present, decide output shapes
  OpDef& infer(void (*fn)(InferContext&));
  OpDef& infer(std::function<void(InferContext&)> fn);
  template <PointsAt<void(InferContext&)> Fn> OpDef& infer(Fn fn) {
    return infer(static_cast<void (*)(InferContext&)>(fn));
  }
  // The gradient is the op <type>_grad, declared by AB_GRAD. It reads these inputs and outputs of the forward op and
  // the gradients of its outputs, and computes those of its inputs; grad_from and grad_to select a subset.
  OpDef& grad_reads(SlotNames ins, SlotNames outs = {});
  OpDef& grad_from(SlotNames outs);
  OpDef& grad_to(SlotNames ins);
  // For AB_GRAD: with the inherited shape function, a gradient has the sequences of this input, if they end at its last
  // row. As in Fluid, the others have none.
  OpDef& grad_lod(std::string_view gradient, std::string_view from);
  OpDef& grad(void (*fn)(GradContext&));  // any other gradient
  OpDef& grad(std::function<void(GradContext&)> fn);
  template <PointsAt<void(GradContext&)> Fn> OpDef& grad(Fn fn) {
    return grad(static_cast<void (*)(GradContext&)>(fn));
  }
  OpDef& no_grad(std::string_view why);
  // The dtype of this input chooses the kernel (default: the first one present; else attribute "dtype").
  OpDef& dtype_of_input(std::string_view slot);
  // Registers fn(TypeTag<T>, const KernelArgs&) -> Kernel for each T.
  template <class... Ts, class Fn> OpDef& cpu(Fn fn) { return add_kernels<Ts...>(On::kCpu, fn); }
  OpDef& cpu_of(DType dtype, KernelFactory factory);
  // One kernel for all dtypes.
  OpDef& cpu_any(KernelFactory factory);
  // Kernels for devices, likewise: functions of a const DeviceContext& (device_context.h).
  template <class... Ts, class Fn> OpDef& device(Fn fn) { return add_kernels<Ts...>(On::kDevice, fn); }
  OpDef& device_any(KernelFactory factory);

  // ---- properties for passes and the engine
  OpDef& traits(unsigned flags) {
    traits_ |= flags;
    return *this;
  }
  OpDef& tile(TileOp tile);  // the float32 kernel as a loop over a tile
  OpDef& tile(std::string_view x, int64_t grain, UnaryLoop loop);
  OpDef& tile(std::string_view a, std::string_view b, int64_t grain, BinaryLoop loop);
  OpDef& flops(std::function<double(const WorkContext&)> fn);  // multiplications and additions; also of the gradient op
  OpDef& images(SlotNames slots, std::string_view attr = {});  // see ImageGroup; also of the gradient op
  OpDef& copies_when(OfOp<bool> fn);                           // Out is X, provided that they have one dtype
  OpDef& merges(OfOp<StateMerge> fn);                          // its persistent outputs
  OpDef& merges(StateMerge how);

  // ---- use
  const std::string& type() const { return type_; }
  const std::string& doc() const { return doc_; }
  const std::string& source() const { return source_; }
  const std::vector<SlotDef>& inputs() const { return inputs_; }
  const std::vector<SlotDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  const std::vector<std::pair<std::string, std::string>>& shares() const { return shares_; }
  bool is_update(std::string_view in, std::string_view out) const;
  bool is_frozen(const ir::Op& op) const;
  unsigned effects() const { return effects_; }
  bool has(Effect effect) const { return (effects_ & effect) != 0; }
  bool is(Trait trait) const { return (traits_ & trait) != 0; }
  unsigned traits() const { return traits_; }
  const TileOp* tile() const { return tile_.make ? &tile_ : nullptr; }  // null: does not work element by element
  bool is_activation() const;  // elementwise, by a loop that depends on no attribute; its gradient reads only Out
  double flops(const WorkContext& c) const { return flops_ ? flops_(c) : 0; }
  const std::vector<ImageGroup>& images() const { return images_; }
  bool copies(const ir::Op& op) const { return copies_ && copies_(op); }
  StateMerge merges(const ir::Op& op) const { return merges_ ? merges_(op) : StateMerge::kUnsaid; }
  const OpDef* forward() const { return forward_; }  // the op of which this one is the gradient; null if it is none
  const GradReads& grad_reads() const { return reads_; }
  bool is_dynamic(const ir::Op& op) const;  // kDynamic, or an input of shape_from is present
  bool has_grad() const { return static_cast<bool>(grad_); }
  const std::string& no_grad_reason() const { return no_grad_; }
  void run_infer(InferContext& c) const;  // errors name the op
  void run_grad(GradContext& g) const { grad_(g); }
  const SlotDef* find_input(std::string_view name) const;
  const SlotDef* find_output(std::string_view name) const;
  const AttrDef* find_attr(std::string_view name) const;
  // InvalidArgument if the input `slot` does not accept values of this kind.
  void check_kind(std::string_view slot, const std::string& variable, VarKind kind) const;
  std::vector<DType> kernel_dtypes() const;
  // The dtype that chooses the kernel, from the dtypes of the op's flattened inputs.
  DType kernel_dtype(const ir::Op& op, const std::vector<Meta>& ins) const;
  // Unsupported, which names the available dtypes.
  const KernelFactory& kernel(DType dtype) const;
  std::vector<DType> device_dtypes() const;
  bool has_device_kernel(DType dtype) const { return any_device_kernel_ || device_kernels_.count(dtype) != 0; }
  const KernelFactory& device_kernel(DType dtype) const;

  // ---- for the registry, when it freezes
  bool has_grad_reads() const { return has_reads_; }
  bool follows() const { return follows_; }  // declared by AB_GRAD
  void finish_reads();                       // sets the slots that grad_from and grad_to leave open
  void follow(const OpDef& forward);         // completes a gradient op, whose forward op is complete
  void check_complete() const;               // Internal if a part of the declaration is missing

 private:
  friend OpDef& declare_gradient(const char* forward, const char* file);
  friend void infer_gradient(InferContext& c);
  OpDef& add_attr(AttrDef def);
  template <class T> OpDef& check_last(std::function<void(const T&)> check);  // of the last declared attribute
  enum class On { kCpu, kDevice };
  // Functions without captures come as a table of pointers.
  using PlainFactory = Kernel (*)(const KernelArgs&);
  struct PlainKernel {
    DType dtype;
    PlainFactory factory;
  };
  template <class... Ts, class Fn> OpDef& add_kernels(On where, const Fn& fn) {
    if constexpr (std::is_same_v<Fn, DTypeFactory>) {
      static constexpr DType kTypes[] = {dtype_of<Ts>...};
      return add_dtype_kernels(where, kTypes, fn);
    } else if constexpr (std::is_empty_v<Fn> && std::is_default_constructible_v<Fn>) {
      static constexpr PlainKernel kKernels[] = {{dtype_of<Ts>, &plain_factory<Fn, Ts>}...};
      return add_plain_kernels(where, kKernels);
    } else {
      (add_kernel(where, dtype_of<Ts>, [fn](const KernelArgs& op) { return Kernel(fn(TypeTag<Ts>{}, op)); }), ...);
      return *this;
    }
  }
  template <class Fn, class T> static Kernel plain_factory(const KernelArgs& op) {
    return Kernel(Fn{}(TypeTag<T>{}, op));
  }
  OpDef& add_plain_kernels(On where, std::span<const PlainKernel> kernels);
  OpDef& add_dtype_kernels(On where, std::span<const DType> dtypes, const DTypeFactory& factory);
  OpDef& add_kernel(On where, DType dtype, KernelFactory factory);
  void follow_slots(const OpDef& forward);

  std::string type_, doc_, source_, no_grad_, dtype_slot_;
  std::vector<SlotDef> inputs_, outputs_;
  std::vector<AttrDef> attrs_;
  std::vector<std::pair<std::string, std::string>> shares_, updates_, grad_lods_;
  std::vector<std::pair<std::string, Holds>> takes_;  // of inherited slots
  std::vector<std::string> shape_slots_, freezing_attrs_;
  unsigned effects_ = 0, traits_ = 0;
  const OpDef* forward_ = nullptr;
  bool follows_ = false, has_reads_ = false;
  GradReads reads_;
  std::vector<ImageGroup> images_;
  TileOp tile_;
  std::function<double(const WorkContext&)> flops_;
  OfOp<bool> copies_;
  OfOp<StateMerge> merges_;
  std::function<void(InferContext&)> infer_;
  std::function<void(GradContext&)> grad_;
  std::map<DType, KernelFactory> kernels_;
  KernelFactory any_kernel_;
  std::map<DType, KernelFactory> device_kernels_;
  KernelFactory any_device_kernel_;
};

// Used by AB_OP and by tables of ops; two declarations of a type abort the program's start.
OpDef& declare_op(const char* type, const char* file);
// <forward>_grad. Undeclared parts are inherited from the forward op when the registry freezes: slots from grad_reads,
// attributes with their checks, the reason against second derivatives, and the shape function infer_gradient. A slot or
// an attribute that is declared here replaces the inherited one.
OpDef& declare_gradient(const char* forward, const char* file);
const OpDef& find_op(const std::string& type);  // Unsupported, with the nearest names, if there is none
const OpDef* find_op_or_null(const std::string& type);
std::vector<std::string> op_types();  // sorted

inline constexpr const char* kNoSecondOrder = "gradients of second order are not offered";
inline constexpr const char* kNotDifferentiable = "piecewise constant or not differentiable";

}  // namespace anabranch

#define AB_OP(type) [[maybe_unused]] static ::anabranch::OpDef& ab_op_##type = ::anabranch::declare_op(#type, __FILE__)
#define AB_GRAD(forward) \
  [[maybe_unused]] static ::anabranch::OpDef& ab_op_##forward##_grad = ::anabranch::declare_gradient(#forward, __FILE__)
// Runs a function that declares ops, before main().
#define AB_OPS(function) [[maybe_unused]] static const bool ab_ops_##function = (function(), true)
