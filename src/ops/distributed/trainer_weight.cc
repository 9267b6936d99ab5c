// The weights of a worker's loss gradients if several workers share a step. Inserted by the engine, not by layers.
#include "ops/distributed/shards.h"

namespace anabranch::distributed::trainer_weight_op {
namespace {

struct Counts {
  Tensor mine{Shape{2}, DType::kFloat64};  // elements that the mean counted on this worker, and its replicas with rows
};

// Computes shares like those of the replicas of one process, so that they have the same bits.
void set_weights(const KernelContext& c, In counted, In x, Out out, const double* all) {
  for (int r = 0; r < out.count; ++r) {
    const double share = counted ? static_cast<double>(c.at(counted, r).numel()) / (all[0] > 0 ? all[0] : 1)
                                 : 1 / (all[1] > 0 ? all[1] : 1);
    visit_dtype(c.at(out, r).dtype(), [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_floating_point_v<T>) {
        const T w = static_cast<T>(share);
        T* to = c.at(out, r).mutable_data<T>();
        for (int64_t i = 0; i < c.at(out, r).numel(); ++i) to[i] = x ? c.at(x, r).data<T>()[i] * w : w;
      }
    });
  }
}

Kernel weight_kernel(const KernelArgs& op) {
  const In counted = op.in("Counted"), x = op.in("X");
  const Out out = op.out("Out");
  const int trainer = op.attr<int32_t>("trainer_id");
  const auto servers = op.attr<std::vector<std::string>>("servers");
  const auto meeting = op.attr<std::string>("meeting");
  return [=, counts = std::make_shared<Counts>()](KernelContext& c) {
    double* mine = counts->mine.mutable_data<double>();
    mine[0] = 0;
    for (int r = 0; r < counted.count; ++r) mine[0] += static_cast<double>(c.at(counted, r).numel());
    mine[1] = out.count;
    const KernelContext values = c;
    const auto answers = std::make_shared<Answers>(1, AsyncContext::of(c).take());
    ps::client_of(trainer)->reduce_in_step(servers, meeting, counts->mine, [=](const rpc::MessageRef& answer) {
      answers->take(answer, [&](const rpc::Message& m) {
        AB_CHECK(m.parts() == 1 && m.shape(0) == Shape{2}, Internal,
                 "trainer_weight: the server must answer with one sum of two numbers");
        set_weights(values, counted, x, out, reinterpret_cast<const double*>(m.payload(0)));
      });
    });
  };
}

}  // namespace

AB_OP(trainer_weight)
    .doc(
        "Out[r] = w X[r] (or w if X is not given), where w is the share of replica r of this worker in the elements of "
        "Counted over all active replicas of all workers, or 1 / their number if nothing is counted.")
    .in_optional_list("Counted", "the input of the loss's mean on every active replica; only its shape is read")
    .in_optional_list("X", "[1] float, the gradients to weight")
    .out_list("Out", "[1] float, of every active replica")
    .attr<int32_t>("dtype", 5, "id of the dtype of Out")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<std::vector<std::string>>("servers", {}, "servers that receive gradients; the first one computes the sum")
    .attr<std::string>("meeting", "", "name of this sum")
    .effects(kEngineOnly | kAsynchronous)
    .infer([](InferContext& c) {
      for (int r = 0; r < c.n_out("Out"); ++r) {
        if (c.n_in("X") > 0) {
          c.out("Out", r) = c.in("X", r);
        } else {
          c.set_out("Out", Shape{1}, dtype_from_number(c.attr<int32_t>("dtype")), r);
        }
      }
    })
    .no_grad("applies to gradients")
    .dtype_of_input("X")
    .cpu<float, double>([](auto, const KernelArgs& op) { return weight_kernel(op); });

}  // namespace anabranch::distributed::trainer_weight_op
