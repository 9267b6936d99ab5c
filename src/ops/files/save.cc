// Saves variables to files.
#include <memory>

#include "ops/files/streams.h"

namespace anabranch::files::save_op {
namespace {

void save_attrs(OpDef& def) {
  def.attr<bool>("overwrite", true, "replaces an existing file; if false, an existing file is an error")
      .attr<bool>("save_as_fp16", false, "writes float32 as float16")
      .required_attr("file_path", AttrType::kString, "the file; missing folders are created")
      .effects(kReaches)
      .no_grad("writes a file");
}

AB_OP(save)
    .doc("Writes a tensor or sparse rows to a file.")
    .in("X", "a tensor or sparse rows")
    .takes("X", Holds::kTensorOrRows)
    .out_named_only("kLookupTablePath", "ignored")
    .with(save_attrs)
    .infer(known_when_read)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      check_path(op.attr<std::string>("file_path"));
      return [path = op.attr<std::string>("file_path"), overwrite = op.attr<bool>("overwrite"),
              half = op.attr<bool>("save_as_fp16"), x = op.in("X"), name = op.op().input("X")[0]](KernelContext& c) {
        write_file(path, overwrite, stream_of(c.value(x), name, half));
      };
    });

AB_OP(save_combine)
    .doc("Writes tensors one after another to one file, or to Y.")
    .in_list("X", "tensors")
    .out_optional("Y", "RAW: the bytes, with save_to_memory")
    .attr<bool>("save_to_memory", false, "writes the bytes to Y instead of a file")
    .with(save_attrs)
    .infer([](InferContext& c) {
      c.out("Y").kind = VarKind::kRaw;
      AB_CHECK(!c.attr<bool>("save_to_memory") || c.has_out("Y"), InvalidArgument,
               "Y must be given with save_to_memory");
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const bool memory = op.attr<bool>("save_to_memory");
      if (!memory) check_path(op.attr<std::string>("file_path"));
      return [=, path = op.attr<std::string>("file_path"), overwrite = op.attr<bool>("overwrite"),
              half = op.attr<bool>("save_as_fp16"), x = op.in("X"), y = op.out("Y"),
              names = op.op().input("X")](KernelContext& c) {
        std::string bytes;
        for (int i = 0; i < x.count; ++i) bytes += stream_of(c.value(x, i), names[static_cast<size_t>(i)], half);
        if (!memory) return write_file(path, overwrite, bytes);
        if (c.needs(y)) c.value(y).as<std::shared_ptr<void>>() = std::make_shared<std::string>(std::move(bytes));
      };
    });

}  // namespace
}  // namespace anabranch::files::save_op
