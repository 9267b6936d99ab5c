// Ops that the engine inserts into the programs of workers that sum their gradients: loss weights and sums.
#include <cstring>

#include "ops/declare/loss_weight.h"
#include "ops/device/weigh.h"
#include "ops/distributed/on_devices.h"
#include "ops/distributed/reduce_work.h"

namespace anabranch::distributed::ring_sum_op {
namespace {

using comm::Chunk;
using comm::Collective;
using comm::CollectiveKind;
using comm::Peers;
using comm::What;

// One gradient, which may be sparse rows, or several dense ones in one exchange. Replaces each by its sum.
struct SumWork {
  ReduceWork one;
  int count;
  std::vector<Chunk> chunks;

  void check(const KernelContext& c, const comm::Group& group) const { one.check(c, group); }
  void run(const KernelContext& c, Peers& peers, Collective& collective) {
    if (count == 1) return one.run(c, peers, collective);
    What what(CollectiveKind::kAllReduce, c.at(one.x, 0).dtype(), one.name);
    for (int i = 0; i < count; ++i) {
      Tensor& t = c.at(one.out, i);
      what.add(t.shape());
      chunks[i] = {t.mutable_raw(), t.numel()};
    }
    collective.all_reduce(peers, what, comm::Combine::kSum, chunks);
  }
};

// Computes shares like those of the replicas of one process, so that they have the same bits.
struct WeightWork {
  In counted, x;
  Out out;
  int replica, active;

  void check(const KernelContext&, const comm::Group&) const {}
  double share(const KernelContext& c, Peers& peers, Collective& collective) const {
    double mine[2] = {0, static_cast<double>(active)};
    for (int r = 0; r < counted.count; ++r) mine[0] += static_cast<double>(c.at(counted, r).numel());
    collective.agree(peers, What(CollectiveKind::kAllGatherRows, DType::kFloat64, "rows"), mine, sizeof(mine));
    double all[2] = {0, 0};
    for (int r = 0; r < peers.size(); ++r) {
      double theirs[2];
      std::memcpy(theirs, collective.note(r), sizeof(theirs));
      all[0] += theirs[0];
      all[1] += theirs[1];
    }
    if (!counted) return 1 / all[1];
    return all[0] > 0 ? static_cast<double>(c.at(counted, replica).numel()) / all[0] : 0;
  }
  void run(const KernelContext& c, Peers& peers, Collective& collective) const {
    const double share = this->share(c, peers, collective);
    visit_dtype(c[out].dtype(), [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_floating_point_v<T>) {
        const T w = static_cast<T>(share);
        T* to = c[out].mutable_data<T>();
        for (int64_t i = 0; i < c[out].numel(); ++i) to[i] = x ? c[x].data<T>()[i] * w : w;
      }
    });
  }
};

// Computes the share on the host, in an exchange with the others; the number becomes an argument of the launch.
class WeightThere final : public comm::WaitedJob {
 public:
  explicit WeightThere(WeightWork work) : work_(work) {}
  double share(const KernelContext& c) {
    values_ = c;
    WaitedJob::run(*ring_.get());
    return share_;
  }

 private:
  void work(Peers& peers) override {
    try {
      share_ = work_.share(values_, peers, collective_);
    } catch (...) {
      if (!peers.failure().empty()) collective_ = Collective();  // pending work must not touch this step's memory
      throw;
    }
  }

  comm::FoundRing ring_{0};
  const WeightWork work_;
  KernelContext values_;
  Collective collective_;
  double share_ = 0;
};

WeightWork weight_work(const KernelArgs& op) {
  return {op.in("Counted"), op.in("X"), op.out("Out"), op.attr<int32_t>("replica"), op.attr<int32_t>("active")};
}

}  // namespace

AB_OP(ring_sum)
    .doc("Out[i] = the sum of X[i] over the processes of ring 0, in the order of ranks.")
    .in_list("X", "gradients, of one shape in all processes; sparse rows: one")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "the same variables")
    .attr<int32_t>("groups", 1, "gradients in this node")
    .with(communicator_attr)
    .effects(kEngineOnly | kAsynchronous)
    .infer([](InferContext& c) {
      for (int i = 0; i < c.n_in("X"); ++i) c.out("Out", i) = c.in("X", i);
    })
    .no_grad("sums gradients")
    .cpu_any([](const KernelArgs& op) {
      const In x = op.in("X");
      const ReduceWork one{x, op.out("Out"), comm::Combine::kSum, op.op().input("X").at(0)};
      return together(0, SumWork{one, x.count, std::vector<Chunk>(x.count)});
    })
    .device<float, double, int32_t, int64_t, float16, bfloat16>([](auto, const KernelArgs& op) {
      return on_devices(op, {});
    });

AB_OP(ring_weight)
    .doc(
        "Out = w X (or w if X is not given), where w is the share of one replica of this process in the elements of "
        "Counted over all active replicas of all processes of ring 0, or 1 / their number if nothing is counted.")
    .with(loss_weight)
    .effects(kEngineOnly | kAsynchronous)
    .dtype_of_input("X")
    .cpu<float, double>([](auto, const KernelArgs& op) { return together(0, weight_work(op)); })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto meeting = std::make_shared<WeightThere>(weight_work(op));
      return [meeting, weigh = device::Weigh<T>(op)](const DeviceContext& c) { weigh(c, meeting->share(c)); };
    });

}  // namespace anabranch::distributed::ring_sum_op
