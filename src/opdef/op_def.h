// What an op type is: its schema (slots, attributes, documentation), its shape function, its gradient and its kernels.
// One AB_OP statement in one file of ops/ declares all of them; nothing else has to be edited to add an op.
//
//   AB_OP(relu)
//       .doc("Out = max(X, 0), elementwise.").source("Nair & Hinton, ICML 2010")
//       .in("X", "[...] float").out("Out", "[...] as X").may_share("X", "Out")
//       .infer([](InferContext& c) { c.same_as("Out", "X"); })
//       .grad([](GradContext& g) { g.op("relu_grad") ... })
//       .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel { ... });
//
// Types, slots and attributes are Fluid's: they are in saved models. The registry freezes at first use and refuses an
// op without documentation, shape function or kernel, or without a gradient or the reason why it has none.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "opdef/grad_context.h"
#include "opdef/infer_context.h"
#include "opdef/kernel_context.h"

namespace anabranch {

// What an input may hold. Ops that take sparse rows or anything check what they get; all others see tensors only.
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
  Attr value;  // default; meaningless when required
  bool required = false;
  std::function<void(const Attr&)> check;  // throws InvalidArgument; may be empty
};

// What a node does besides reading inputs and writing outputs, declared so that the executor can order it.
enum Effect : unsigned {
  kNoEffect = 0,
  kRandom = 1u << 0,      // draws random numbers
  kDynamic = 1u << 1,     // output shapes depend on input values: inferred right before the kernel runs
  kOrdered = 1u << 2,     // keeps program order with all other ordered ops (print, file, reader)
  kTakesViews = 1u << 3,  // kernel accepts row-strided tensors
  kRunsBlock = 1u << 4,   // executes a sub-block: reads and writes what the block does
  kMaybeUnset = 1u << 5,  // inputs may hold nothing (the branch that did not run)
  kKeepsOutputs = 1u << 7,  // an output that the op does not write in a run keeps what it held
};

class OpDef {
 public:
  explicit OpDef(std::string type) : type_(std::move(type)) {}

  // ---- declaration, chained
  OpDef& doc(std::string text);
  OpDef& source(std::string paper);
  OpDef& in(std::string name, std::string doc);
  OpDef& in_list(std::string name, std::string doc);
  OpDef& in_optional(std::string name, std::string doc);
  OpDef& in_optional_list(std::string name, std::string doc);
  OpDef& out(std::string name, std::string doc);
  OpDef& out_list(std::string name, std::string doc);
  OpDef& out_optional(std::string name, std::string doc);
  OpDef& out_intermediate(std::string name, std::string doc);
  OpDef& takes(std::string_view in, Holds what);  // of a declared input
  OpDef& out_named_only(std::string name, std::string doc);  // may be missing; its variable stays as it is
  template <class T> OpDef& attr(std::string name, T value, std::string doc, std::function<void(const T&)> check = {}) {
    AttrDef def{std::move(name), std::move(doc), attr_type(Attr(value)), Attr(value), false, {}};
    if (check) def.check = [check](const Attr& a) { check(std::get<T>(a)); };
    return add_attr(std::move(def));
  }
  OpDef& required_attr(std::string name, AttrType type, std::string doc);
  OpDef& may_share(std::string in, std::string out);  // the output may take the input's memory when it is the last use
  // The output is the input, changed: kind, shape, dtype and LoD stay. Where both name one variable, it is changed in its
  // place; any other op that writes a variable makes a new value of it. Slots X and XOut are such a pair by their names.
  OpDef& updates(std::string in, std::string out);
  OpDef& effects(unsigned flags) {
    effects_ |= flags;
    return *this;
  }
  OpDef& shape_from(std::string in);  // values of this optional input, where it is given, decide output shapes
  OpDef& infer(std::function<void(InferContext&)> fn);
  OpDef& grad(std::function<void(GradContext&)> fn);
  OpDef& no_grad(std::string why);
  // The type's kernel is chosen by the dtype of this input (default: the first one given; else attribute "dtype").
  OpDef& dtype_of_input(std::string slot);
  // Registers fn(TypeTag<T>, const KernelArgs&) -> Kernel for each T.
  template <class... Ts, class Fn> OpDef& cpu(Fn fn) {
    (add_kernel(dtype_of<Ts>, [fn](const KernelArgs& op) { return Kernel(fn(TypeTag<Ts>{}, op)); }), ...);
    return *this;
  }
  // One kernel whatever the dtype.
  OpDef& cpu_any(KernelFactory factory);

  // ---- use
  const std::string& type() const { return type_; }
  const std::string& doc() const { return doc_; }
  const std::string& source() const { return source_; }
  const std::vector<SlotDef>& inputs() const { return inputs_; }
  const std::vector<SlotDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  const std::vector<std::pair<std::string, std::string>>& shares() const { return shares_; }
  bool is_update(std::string_view in, std::string_view out) const;
  // Where this attribute is true, the op leaves what it would update as it is.
  OpDef& frozen_by(std::string attr);
  bool is_frozen(const ir::Op& op) const;
  unsigned effects() const { return effects_; }
  bool has(Effect effect) const { return (effects_ & effect) != 0; }
  bool is_dynamic(const ir::Op& op) const;  // kDynamic, or an input named by shape_from is given
  bool has_grad() const { return static_cast<bool>(grad_); }
  const std::string& no_grad_reason() const { return no_grad_; }
  void run_infer(InferContext& c) const { infer_(c); }
  void run_grad(GradContext& g) const { grad_(g); }
  const SlotDef* find_input(std::string_view name) const;
  const SlotDef* find_output(std::string_view name) const;
  const AttrDef* find_attr(std::string_view name) const;
  // InvalidArgument when the input `slot` does not take values of this kind.
  void check_kind(std::string_view slot, const std::string& variable, VarKind kind) const;
  std::vector<DType> kernel_dtypes() const;
  // The dtype that chooses the kernel, from the dtypes of the op's flattened inputs.
  DType kernel_dtype(const ir::Op& op, const std::vector<Meta>& ins) const;
  // Unsupported names the dtypes there are.
  const KernelFactory& kernel(DType dtype) const;

  void check_complete() const;  // Internal when a part of the declaration is missing

 private:
  OpDef& add_attr(AttrDef def);
  OpDef& add_kernel(DType dtype, KernelFactory factory);

  std::string type_, doc_, source_, no_grad_, dtype_slot_;
  std::vector<SlotDef> inputs_, outputs_;
  std::vector<AttrDef> attrs_;
  std::vector<std::pair<std::string, std::string>> shares_, updates_;
  std::vector<std::string> shape_slots_, freezing_attrs_;
  unsigned effects_ = 0;
  std::function<void(InferContext&)> infer_;
  std::function<void(GradContext&)> grad_;
  std::map<DType, KernelFactory> kernels_;
  KernelFactory any_kernel_;
};

OpDef& declare_op(const char* type,
                  const char* file);            // used by AB_OP; two declarations of a type end the program start
const OpDef& find_op(const std::string& type);  // Unsupported, with the nearest names, when there is none
const OpDef* find_op_or_null(const std::string& type);
std::vector<std::string> op_types();  // sorted

}  // namespace anabranch

#define AB_OP(type) [[maybe_unused]] static ::anabranch::OpDef& ab_op_##type = ::anabranch::declare_op(#type, __FILE__)
