// Quantization by a scale that is a moving average of max |X|: InAccum / InState, both of which decay by moving_rate.
#include "ops/quantize/levels.h"

namespace anabranch::quantize::moving_average_op {
namespace {

enum class Makes { kLevels, kNumbers, kCopy };

struct Form {
  const char *type, *doc;
  Makes makes;
};

void infer_average(InferContext& c) {
  const bool test = c.attr<bool>("is_test");
  for (const char* slot : {"InScale", "InAccum", "InState"}) {
    if (!c.has_in(slot)) continue;
    check_numel(c, slot, 1);
    check_same_dtype(c, slot, "X");
  }
  AB_CHECK(test || (c.has_in("InAccum") && c.has_in("InState")), InvalidArgument,
           "InAccum and InState must be given for training");
  c.same_as("Out", "X");
  for (const char* slot : {"OutScale", "OutState", "OutAccum"}) c.set_out(slot, scalar_shape(), c.in("X").dtype);
}

// The scale of this step, and the state after it.
template <class T> class Average {
 public:
  Average(const KernelArgs& op, bool with_scale)
      : test_(op.attr<bool>("is_test")),
        rate_(static_cast<T>(op.attr<float>("moving_rate"))),
        accum_(op.in("InAccum")),
        state_(op.in("InState")),
        accum_out_(op.out("OutAccum")),
        state_out_(op.out("OutState")),
        scale_out_(op.out("OutScale")) {
    if (with_scale) scale_ = op.in("InScale");
  }

  T scale(const KernelContext& c, const Tensor& x) const {
    T accum = accum_ ? number_of<T>(c, accum_) : T{0}, state = state_ ? number_of<T>(c, state_) : T{0};
    T made = scale_ ? number_of<T>(c, scale_) : state > 0 ? accum / state : T{0};
    if (!test_) {
      state = rate_ * state + 1;
      accum = rate_ * accum + max_abs<T>(c, x);
      made = accum / state;
    }
    put(c, accum_out_, accum);
    put(c, state_out_, state);
    put(c, scale_out_, made);
    return made;
  }

 private:
  static void put(const KernelContext& c, Out out, T value) {
    if (c.needs(out)) *c[out].mutable_data<T>() = value;
  }

  bool test_;
  T rate_;
  In scale_, accum_, state_;
  Out accum_out_, state_out_, scale_out_;
};

void declare_average(const Form& form) {
  const Makes makes = form.makes;
  OpDef& def = declare_op(form.type, __FILE__).doc(form.doc).in("X", "[...] float");
  if (makes != Makes::kCopy) def.in("InScale", "[1]: the scale, for is_test").updates("InScale", "OutScale");
  def.in_optional("InAccum", "[1]: weighted sum of max |X| so far").in_optional("InState", "[1]: sum of the weights");
  def.out("Out", "[...] like X").out("OutScale", "[1]: InAccum / InState after this step");
  def.out_optional("OutState", "[1]: moving_rate InState + 1");
  def.out_optional("OutAccum", "[1]: moving_rate InAccum + max |X|");
  def.updates("InState", "OutState").updates("InAccum", "OutAccum");
  def.attr<float>("moving_rate", 0.9f, "decay of both sums per step");
  if (makes != Makes::kCopy) def.with(bit_length);
  def.attr<bool>("is_test", false, "leaves the sums unchanged").dtype_of_input("X");
  if (makes == Makes::kCopy) def.may_share("X", "Out");
  def.infer(infer_average)
      .no_grad(kNoGrad)
      .cpu<float, double>([makes]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
        const int64_t levels = makes == Makes::kCopy ? 1 : levels_of(op.attr<int32_t>("bit_length"));
        return [makes, levels, average = Average<T>(op, makes != Makes::kCopy), x = op.in("X"),
                out = op.out("Out")](KernelContext& c) {
          const T scale = average.scale(c, c[x]);
          const T* from = c[x].data<T>();
          T* to = c[out].mutable_data<T>();
          if (makes == Makes::kCopy) return map(c, kCheapGrain, c[x].numel(), from, to, [](T v) { return v; });
          const Rounding<T> rounding{scale, static_cast<T>(levels), makes == Makes::kNumbers};
          rounding(c, from, to, c[x].numel());
        };
      });
}

void declare_all() {
  declare_average({.type = "fake_quantize_moving_average_abs_max",
                   .doc = "Out = round(X / OutScale (2^(bit_length - 1) - 1)), with X clamped to OutScale.",
                   .makes = Makes::kLevels});
  declare_average(
      {.type = "fake_quantize_dequantize_moving_average_abs_max",
       .doc = "Out = X clamped to OutScale and rounded to the nearest number that bit_length bits can represent.",
       .makes = Makes::kNumbers});
  declare_average({.type = "moving_average_abs_max_scale",
                   .doc = "OutScale = the moving average of max |X|, Out = X.",
                   .makes = Makes::kCopy});
}

AB_OPS(declare_all);

}  // namespace
}  // namespace anabranch::quantize::moving_average_op
