// Readers inside a program. A batch is handed to the run like a feed, by whoever holds the reader's queue, so nothing
// is left to do here at run time: these ops say which variables a reader fills, and with what.
#include "opdef/op_def.h"

namespace anabranch::control::reader_op {
namespace {

constexpr const char* kNoData =
    "there is no next batch: the reader of this op has no source, is not started or is at its end";

void infer_reader(InferContext& c) {
  for (int i = 0; i < c.n_out("Out"); ++i) c.out("Out", i).kind = VarKind::kReader;
}

Kernel nothing(const KernelArgs& /*op*/) {
  return [](KernelContext&) {};
}

}  // namespace

AB_OP(create_py_reader)
    .doc("Out is a reader whose batches come from a queue of the process.")
    .in("blocking_queue", "the queue, by name")
    .takes("blocking_queue", Holds::kAnything)
    .out_list("Out", "reader")
    .attr<std::vector<int32_t>>("shape_concat", {}, "shapes of a batch's tensors, one behind the other")
    .attr<std::vector<int32_t>>("ranks", {}, "ranks of the tensors: how shape_concat is cut")
    .attr<std::vector<int32_t>>("lod_levels", {}, "levels of sequences of each tensor")
    .attr<std::vector<int32_t>>("dtypes", {}, "element type of each tensor")
    .attr<std::vector<int32_t>>("need_check_feed", {}, "1 for each tensor whose shape and dtype are compared")
    .attr<bool>("use_data_config", true, "the attributes above hold")
    .attr<int32_t>("device_index", 0, "of a reader that belongs to one of several devices")
    .attr<int32_t>("device_count", 1, "devices that read")
    .effects(kMaybeUnset)
    .traits(kServed)
    .infer(infer_reader)
    .no_grad("a reader has none")
    .cpu_any(nothing);

AB_OP(create_double_buffer_reader)
    .doc("Out reads what UnderlyingReader reads; batches are always made ahead by the thread of the queue.")
    .in("UnderlyingReader", "reader")
    .takes("UnderlyingReader", Holds::kAnything)
    .out("Out", "reader")
    .attr<std::string>("place", "AUTO", "where batches are brought")
    .effects(kMaybeUnset)
    .traits(kServed)
    .infer(infer_reader)
    .no_grad("a reader has none")
    .cpu_any(nothing);

AB_OP(read)
    .doc("Out are the tensors of the next batch of Reader.")
    .in("Reader", "reader")
    .takes("Reader", Holds::kAnything)
    .out_list("Out", "tensors")
    .attr<bool>("throw_eof_exp", true, "the end of the data is an error")
    .attr<bool>("infer_out", true, "shapes of Out are those that the reader declares")
    .attr<bool>("drop_last", true, "leaves out batches at the end that are fewer than replicas")
    .effects(kMaybeUnset | kOrdered)
    .traits(kServed | kOnlyComputes)
    .infer([](InferContext& c) { AB_CHECK(!c.runtime(), EndOfData, "{}", kNoData); })
    .no_grad("data has none")
    .cpu_any(nothing);

}  // namespace anabranch::control::reader_op
