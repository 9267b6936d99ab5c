// Sums over replicas that live in one process. Made by the engine between replicas, not by layers.
#include <cstring>
#include <memory>

#include "opdef/device_rows.h"
#include "ops/collective/over_devices.h"
#include "ops/declare/loss_weight.h"
#include "ops/device/launch_rows.h"
#include "ops/device/launch_tensor.h"
#include "ops/device/weigh.h"

namespace anabranch::collective::all_reduce_op {
namespace {

constexpr int64_t kGrain = 1 << 14;

template <class T> void add_range(const KernelContext& c, const GradientSlots& g, int64_t begin, int64_t end) {
  const T* first = c.at(g.in, 0).data<T>();
  T* sum = c.at(g.out, 0).mutable_data<T>();
  // Adds in replica order for every owner of the result, so AllReduce and Reduce give the same bits. Blocks stay in the
  // cache; the sum is built in a separate buffer because out[0] may be the input of a later replica.
  constexpr int64_t kBlock = 2048;
  T block[kBlock];
  for (int64_t b = begin; b < end; b += kBlock) {
    const int64_t n = std::min(kBlock, end - b);
    std::copy(first + b, first + b + n, block);
    for (int r = 1; r < g.in.count; ++r) {
      const T* x = c.at(g.in, r).data<T>() + b;
      for (int64_t i = 0; i < n; ++i) block[i] += x[i];
    }
    std::copy(block, block + n, sum + b);
    for (int r = 1; r < g.out.count; ++r) {
      std::copy(block, block + n, c.at(g.out, r).mutable_data<T>() + b);
    }
  }
}

// Sparse gradients are concatenated: the rows of replica 0, then of replica 1, ... `joined` is memory kept between
// steps, because an output may be the input of a later replica.
void join_rows(const KernelContext& c, const GradientSlots& g, SelectedRows& joined) {
  const SelectedRows& first = c.value(g.in, 0).rows();
  joined.height = first.height;
  joined.rows.clear();
  for (int r = 0; r < g.in.count; ++r) {
    const auto& rows = c.value(g.in, r).rows().rows;
    joined.rows.insert(joined.rows.end(), rows.begin(), rows.end());
  }
  Shape shape = first.value.shape();
  shape.set(0, static_cast<int64_t>(joined.rows.size()));
  joined.value.resize(shape, first.value.dtype());
  char* to = static_cast<char*>(joined.value.mutable_raw());
  for (int r = 0; r < g.in.count; ++r) {
    const Tensor& part = c.value(g.in, r).rows().value;
    if (part.bytes()) std::memcpy(to, part.raw(), part.bytes());
    to += part.bytes();
  }
  for (int r = 0; r < g.out.count; ++r) {
    auto& out = c.value(g.out, r).as<SelectedRows>();
    out.rows = joined.rows;
    out.height = joined.height;
    out.value.copy_from(joined.value);
  }
}

// Concatenates the rows when all replicas share one device. An input may also be an output.
void join_there(const DeviceContext& c, const GradientSlots& g, SelectedRows& joined) {
  const auto part = [&](int r) -> const SelectedRows& { return c.value(g.in, r).rows(); };
  device::join_rows(c, g.in.count, part, &joined);
  for (int r = 0; r < g.out.count; ++r) device::copy_rows(c, joined, &c.value(g.out, r).as<SelectedRows>());
}

// Replicas that share a device: all inputs are already there, so they are summed in replica order, too.
void add_there(const DeviceContext& c, const GradientSlots& g, ab_kernel kernel) {
  device::SumArgs a{};
  AB_CHECK(g.in.count <= device::kMostSummands, Unsupported, "{} replicas share a device; a sum takes at most {}",
           g.in.count, device::kMostSummands);
  for (int r = 0; r < g.in.count; ++r) a.x[r] = device::operand(c.at(g.in, r));
  a.y = device::operand(c.at(g.out, 0));
  a.n = c.at(g.out, 0).numel();
  a.count = g.in.count;
  c.launch(kernel, a);
  for (int r = 1; r < g.out.count; ++r) c.copy(c.at(g.out, r), c.at(g.out, 0));
}

// This replica's share of the elements counted on all replicas; reads only shapes.
double share_of(const KernelContext& c, In counted, int replica, int active) {
  if (!counted) return 1.0 / active;
  double all = 0;
  for (int r = 0; r < counted.count; ++r) all += static_cast<double>(c.at(counted, r).numel());
  return all > 0 ? static_cast<double>(c.at(counted, replica).numel()) / all : 0.0;
}

void infer(InferContext& c) {
  const int groups = c.attr<int32_t>("groups");
  const int per_in = c.n_in("X") / groups, per_out = c.n_out("Out") / groups;
  for (int k = 0; k < groups; ++k) {
    const Meta& first = c.in("X", k * per_in);
    for (int r = 1; r < per_in; ++r) {
      const Meta& other = c.in("X", k * per_in + r);
      AB_CHECK(other.kind == first.kind && other.dtype == first.dtype && compatible(other.shape, first.shape),
               ShapeMismatch,
               "the gradients of all replicas must have the same dtype and shape, got {} {} on replica 0 and {} {} on "
               "replica {}",
               first.shape.str(), dtype_name(first.dtype), other.shape.str(), dtype_name(other.dtype), r);
    }
    for (int r = 0; r < per_out; ++r) c.out("Out", k * per_out + r) = first;
  }
}

}  // namespace

AB_OP(all_reduce)
    .doc("Out[k, r] = sum over replicas i of X[k, i], in order of i, for each of `groups` gradients k.")
    .in_list("X", "gradients, grouped, one per active replica")
    .takes("X", Holds::kTensorOrRows)
    .out_list("Out", "sums, grouped, one per replica that needs it")
    .attr<int32_t>("groups", 1, "gradients in this node")
    .with(over_devices_attrs)
    .effects(kEngineOnly)
    .infer(infer)
    .no_grad("sums gradients")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X");
      const Out out = op.out("Out");
      const int groups = op.attr<int32_t>("groups");
      const int per_in = x.count / groups, per_out = out.count / groups;
      return [=, joined = std::make_shared<SelectedRows>()](KernelContext& c) {
        for (int k = 0; k < groups; ++k) {
          const GradientSlots g{{x.first + k * per_in, per_in}, {out.first + k * per_out, per_out}};
          if (c.value(g.in).is<SelectedRows>()) {
            join_rows(c, g, *joined);
          } else {
            c.parallel_for(c.at(g.in, 0).numel(), kGrain, [&](int64_t b, int64_t e) { add_range<T>(c, g, b, e); });
          }
        }
      };
    })
    .with(rows_on_devices)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X");
      const Out out = op.out("Out");
      const int groups = op.attr<int32_t>("groups"), per_in = x.count / groups, per_out = out.count / groups;
      if (!op.attr<std::vector<int32_t>>("devices").empty()) {
        return [over = OverDevices(op)](const DeviceContext& c) mutable { over.sum(c); };
      }
      return
          [=, kernel = device::kernel_of<T>("sum"), joined = std::make_shared<SelectedRows>()](const DeviceContext& c) {
            for (int k = 0; k < groups; ++k) {
              const GradientSlots g{{x.first + k * per_in, per_in}, {out.first + k * per_out, per_out}};
              c.value(g.in).is<SelectedRows>() ? join_there(c, g, *joined) : add_there(c, g, kernel);
            }
          };
    });

AB_OP(broadcast_from_owner)
    .doc("Out[k, r] = X[k] on all replicas r, of which one holds X[k], for each of `groups` values k.")
    .in_list("X", "one value per group, each from one replica")
    .out_list("Out", "copies, grouped, one per replica; one of them is X")
    .attr<int32_t>("groups", 1, "values in this node")
    .with(over_devices_attrs)
    .effects(kEngineOnly)
    .infer([](InferContext& c) {
      const int groups = c.attr<int32_t>("groups"), replicas = c.n_out("Out") / groups;
      for (int k = 0; k < groups; ++k) {
        for (int r = 0; r < replicas; ++r) c.out("Out", k * replicas + r) = c.in("X", k);
      }
    })
    .no_grad("broadcasts values after their update")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In x = op.in("X");
      const Out out = op.out("Out");
      return [=, replicas = out.count / op.attr<int32_t>("groups")](KernelContext& c) {
        for (int i = 0; i < out.count; ++i) {
          const Value& from = c.value(x, i / replicas);
          Value& to = c.value(out, i);
          if (&from != &to) to.copy_from(from);
        }
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      AB_CHECK(!op.attr<std::vector<int32_t>>("devices").empty(), Unsupported, "replicas share devices");
      return [over = OverDevices(op)](const DeviceContext& c) mutable { over.broadcast(c); };
    });

AB_OP(replica_weight)
    .doc(
        "Out = w X (or w when X is not given), where w is this replica's share of the elements of Counted over all "
        "active replicas, or 1 / active when nothing is counted. Weights a replica's loss gradient.")
    .with(loss_weight)
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In counted = op.in("Counted"), x = op.in("X");
      const Out out = op.out("Out");
      const int replica = op.attr<int32_t>("replica"), active = op.attr<int32_t>("active");
      return [=](KernelContext& c) {
        const T w = static_cast<T>(share_of(c, counted, replica, active));
        const int64_t n = c[out].numel();
        const T* from = x ? c[x].data<T>() : nullptr;
        T* to = c[out].mutable_data<T>();
        for (int64_t i = 0; i < n; ++i) to[i] = from ? from[i] * w : w;
      };
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [weigh = device::Weigh<T>(op), counted = op.in("Counted"), replica = op.attr<int32_t>("replica"),
              active = op.attr<int32_t>("active")](const DeviceContext& c) {
        weigh(c, share_of(c, counted, replica, active));
      };
    });

AB_OP(copy_value)
    .doc("Copies X to Out between two versions of one variable. X may be of any kind.")
    .in("X", "any")
    .takes("X", Holds::kAnything)
    .out("Out", "like X")
    .effects(kDynamic | kMaybeUnset | kEngineOnly)
    .infer([](InferContext&) {})
    .no_grad("inserted by the engine after autodiff")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        if (c.value(x).initialized()) {
          c.value(out).copy_from(c.value(x));
        } else {
          c.value(out).clear();
        }
      };
    });

AB_OP(empty_array)
    .doc("Out = an empty array, the value of a tensor array before its first write.")
    .out("Out", "an array of tensors")
    .effects(kEngineOnly)
    .infer([](InferContext& c) { c.out("Out").kind = VarKind::kLoDTensorArray; })
    .no_grad("inserted by the engine after autodiff")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [out = op.out("Out")](KernelContext& c) { c.value(out).as<TensorArray>().clear(); };
    });

AB_OP(barrier)
    .doc("Does nothing; its edges order other nodes.")
    .effects(kEngineOnly)
    .infer([](InferContext&) {})
    .no_grad("computes nothing")
    .cpu_any([](const KernelArgs&) -> Kernel { return [](KernelContext&) {}; });

}  // namespace anabranch::collective::all_reduce_op
