// Several layers of LSTM over a dense batch, with weights in the order of cuDNN, from which Fluid takes its name.
#include "ops/declare/attr_checks.h"
#include "ops/kernels/work.h"
#include "ops/sequence/stacked_lstm.h"

namespace anabranch::sequence::cudnn_lstm_op {
namespace {

// The batch is compared at the run: as in Fluid, a program may be built with states of another one.
void check_state(const InferContext& c, const char* slot, int64_t layers, int64_t batch, int64_t hidden) {
  check_same_dtype(c, slot, "Input");
  check_shape(c, slot, Shape{layers, c.runtime() ? batch : kUnknown, hidden});
}

void infer(InferContext& c) {
  check_rank(c, "Input", 3, 3);
  check_same_dtype(c, "W", "Input");
  const Shape& x = c.in("Input").shape;
  const StackedLstm lstm(c.op(), x);
  const int64_t states = lstm.layers * lstm.ways;
  check_state(c, "InitH", states, x[1], lstm.hidden);
  check_state(c, "InitC", states, x[1], lstm.hidden);
  if (x[2] != kUnknown) check_numel(c, "W", lstm.weight_count());
  const DType dtype = c.in("Input").dtype;
  c.set_out("Out", Shape{x[0], x[1], lstm.width()}, dtype);
  c.set_out("last_h", Shape{states, x[1], lstm.hidden}, dtype);
  c.set_out("last_c", Shape{states, x[1], lstm.hidden}, dtype);
  const bool known = x[0] != kUnknown && x[1] != kUnknown;
  c.set_out("Reserve", Shape{known ? lstm.reserve_count() : kUnknown}, dtype);
}

AB_OP(cudnn_lstm)
    .doc(
        "Layers of LSTM: i, f, o = sigmoid and g = tanh of W x + b + R h + r, c' = f c + i g, h' = o tanh(c'), from "
        "the first step to the last; with is_bidirec also from the last to the first, concatenated. A layer reads the "
        "output of the previous one, with dropout.")
    .source("https://arxiv.org/abs/1308.0850")
    .in("Input", "[steps, batch, input_size] float")
    .in("InitH", "[layers * ways, batch, hidden_size], h before the first step")
    .in("InitC", "[layers * ways, batch, hidden_size], c before the first step")
    .in("W", "W and R of each layer and direction, rows i, f, g, o; then b and r of each layer and direction")
    .in_optional("Cache", "ignored")
    .takes("Cache", Holds::kAnything)
    .out("Out", "[steps, batch, ways * hidden_size], h of the last layer")
    .out("last_h", "[layers * ways, batch, hidden_size], h after the last step")
    .out("last_c", "[layers * ways, batch, hidden_size], c after the last step")
    .out_optional("Reserve", "gates, cells and states, for the gradient")
    .attr<int32_t>("max_len", 1, "ignored")
    .attr<float>("dropout_prob", 0.0F, "fraction of inputs dropped in all layers except the first",
                 within("dropout_prob", 0.0F, 1.0F))
    .attr<bool>("is_bidirec", false, "adds the direction from the last step to the first")
    .attr<int32_t>("input_size", 1, "ignored: the width of Input is used")
    .attr<int32_t>("hidden_size", 100, "width of h and c", within("hidden_size", 1, 1 << 20))
    .attr<int32_t>("num_layers", 1, "number of layers, at least 1", within("num_layers", 1, 4096))
    .attr<bool>("is_test", false, "drops nothing")
    .attr<int32_t>("seed", 0, "seed of dropout; 0: uses the seed of the program")
    .dtype_of_input("Input")
    .effects(kRandom | kMaybeUnset)
    .infer(infer)
    .grad_reads({"Input", "InitH", "InitC", "W"}, {"Reserve"})
    .grad_from({"Out", "last_h", "last_c"})
    .grad_to({"Input", "InitH", "InitC", "W"})
    .with(stacked_lstm_forward);

AB_GRAD(cudnn_lstm)
    .doc("Gradients of cudnn_lstm with respect to Input, InitH, InitC and W.")
    .in_optional("last_h@GRAD", "as last_h; zeros if not given")
    .in_optional("last_c@GRAD", "as last_c; zeros if not given")
    .in_optional("Out@GRAD", "like Out; zeros if not given")
    .dtype_of_input("Input")
    .infer([](InferContext& c) {
      check_rank(c, "Input", 3, 3);
      const Shape& x = c.in("Input").shape;
      const StackedLstm lstm(c.op(), x);
      const int64_t states = lstm.layers * lstm.ways;
      for (const char* slot : {"InitH", "InitC", "last_h@GRAD", "last_c@GRAD"}) {
        if (c.has_in(slot)) check_state(c, slot, states, x[1], lstm.hidden);
      }
      if (c.has_in("Out@GRAD")) {
        check_same_dtype(c, "Out@GRAD", "Input");
        check_shape(c, "Out@GRAD", Shape{x[0], x[1], lstm.width()});
      }
      check_same_dtype(c, "W", "Input");
      if (x[2] != kUnknown) check_numel(c, "W", lstm.weight_count());
      AB_CHECK(c.has_in("Reserve"), InvalidArgument, "Reserve must be given to compute the gradient");
      check_same_dtype(c, "Reserve", "Input");
      if (x.known()) check_numel(c, "Reserve", lstm.reserve_count());
      for (const char* slot : {"Input", "InitH", "InitC", "W"}) grad_as(c, std::string(slot) + "@GRAD", slot);
    })
    .with(stacked_lstm_backward);

}  // namespace
}  // namespace anabranch::sequence::cudnn_lstm_op
