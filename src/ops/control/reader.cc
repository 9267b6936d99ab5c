// Readers inside a program. The owner of the reader's queue feeds each batch to the run, so these ops do nothing at run
// time: they record which variables a reader fills, and how.
#include "opdef/op_def.h"

namespace anabranch::control::reader_op {
namespace {

constexpr const char* kNoData =
    "the reader must have a next batch, but it has no source, is not started, or is at its end";

void infer_reader(InferContext& c) {
  for (int i = 0; i < c.n_out("Out"); ++i) c.out("Out", i).kind = VarKind::kReader;
}

Kernel nothing(const KernelArgs& /*op*/) {
  return [](KernelContext&) {};
}

}  // namespace

AB_OP(create_py_reader)
    .doc("Out = a reader that takes its batches from a queue of the process.")
    .in("blocking_queue", "the queue, by name")
    .takes("blocking_queue", Holds::kAnything)
    .out_list("Out", "reader")
    .attr<std::vector<int32_t>>("shape_concat", {}, "shapes of a batch's tensors, concatenated")
    .attr<std::vector<int32_t>>("ranks", {}, "ranks of the tensors: they split shape_concat")
    .attr<std::vector<int32_t>>("lod_levels", {}, "number of LoD levels of each tensor")
    .attr<std::vector<int32_t>>("dtypes", {}, "element type of each tensor")
    .attr<std::vector<int32_t>>("need_check_feed", {}, "1 for each tensor whose shape and dtype are checked")
    .attr<bool>("use_data_config", true, "uses the attributes above")
    .attr<int32_t>("device_index", 0, "device of a reader that serves one of several devices")
    .attr<int32_t>("device_count", 1, "number of devices that read")
    .effects(kMaybeUnset)
    .traits(kServed)
    .infer(infer_reader)
    .no_grad("the output is a reader")
    .cpu_any(nothing);

AB_OP(create_double_buffer_reader)
    .doc("Out = UnderlyingReader; the thread of its queue always prepares batches ahead.")
    .in("UnderlyingReader", "reader")
    .takes("UnderlyingReader", Holds::kAnything)
    .out("Out", "reader")
    .attr<std::string>("place", "AUTO", "device that batches are copied to")
    .effects(kMaybeUnset)
    .traits(kServed)
    .infer(infer_reader)
    .no_grad("the output is a reader")
    .cpu_any(nothing);

AB_OP(read)
    .doc("Out = the tensors of the next batch of Reader.")
    .in("Reader", "reader")
    .takes("Reader", Holds::kAnything)
    .out_list("Out", "tensors")
    .attr<bool>("throw_eof_exp", true, "raises an error at the end of the data")
    .attr<bool>("infer_out", true, "Out takes the shapes that the reader declares")
    .attr<bool>("drop_last", true, "drops the last batches if there are fewer of them than replicas")
    .effects(kMaybeUnset | kOrdered)
    .traits(kServed | kOnlyComputes)
    .infer([](InferContext& c) { AB_CHECK(!c.runtime(), EndOfData, "{}", kNoData); })
    .no_grad("batches are data")
    .cpu_any(nothing);

}  // namespace anabranch::control::reader_op
