#include "ops/sparse/queued_lookups.h"

#include <array>

#include "base/flags.h"
#include "ops/device/launch_update.h"
#include "ops/device/zeros.h"
#include "ops/sequence/offsets.h"
#include "ops/sparse/queued_rows.h"

namespace anabranch::sparse {
namespace {

// Parts of one result: kMostLookups per launch.
template <class T> class QueuedParts {
 public:
  struct Part {
    In x, ids;      // no ids: rows of x directly
    int64_t width;  // 0: that of the result
    int64_t padding = kNoPadding;
    Pool pool = Pool::kNone;
    double empty = 0;
  };
  QueuedParts(std::vector<Part> parts, Out out) : parts_(std::move(parts)), offsets_(parts_.size()), out_(out) {}

  void operator()(const DeviceContext& c) {
    device::GatherPartsArgs a{};
    a.y = device::operand(c[out_]);
    a.fault = device::fault_of(c);
    a.rows = c[out_].rows();
    a.stride = c[out_].row_elems();
    for (size_t i = 0; i < parts_.size(); ++i) {
      const int64_t width = parts_[i].width ? parts_[i].width : a.stride;
      a.parts[a.count] = args_of(c, c, i, width);
      a.parts[a.count++].column = a.first_column + a.columns;
      a.columns += width;
      if (a.count < device::kMostLookups && i + 1 < parts_.size()) continue;
      c.launch(kernel_, a);
      a.first_column += a.columns;
      a.columns = a.count = 0;
    }
  }

 private:
  device::LookupPart args_of(const KernelContext& c, const DeviceContext& queued, size_t i, int64_t width) {
    const Part& p = parts_[i];
    device::LookupPart a{};
    a.x = device::operand(c[p.x]);
    a.height = c[p.x].rows();
    a.width = c[p.x].row_elems();
    if (!p.ids) return a;
    const Tensor& ids = c[p.ids];
    a.ids = device::operand(ids);
    a.per_row = p.pool == Pool::kNone ? width / a.width : 1;
    a.padding = p.padding;
    a.flags = id_flags(ids, p.padding);
    a.empty = p.empty;
    a.mode = pooling_of(p.pool);
    if (p.pool != Pool::kNone) a.offsets = offsets_[i].of(queued, sequence::offsets(ids));
    return a;
  }

  ab_kernel kernel_ = device::kernel_of<T>("gather_parts");
  std::vector<Part> parts_;
  std::vector<device::Upload> offsets_;
  Out out_;
};

In one_of(In list, int i) { return {list.first + i, 1}; }

int64_t without_gradient(int64_t padding) { return Flags::exact_fluid() ? kNoPadding : padding; }

// For the ops with declare_sources().
template <class T> class QueuedSources {
 public:
  explicit QueuedSources(const KernelArgs& op) : ids_(op.in("Ids")), grads_(op.in("Grad")) {
    const auto& column = op.attr<std::vector<int32_t>>("column");
    const auto& per_row = op.attr<std::vector<int32_t>>("per_row");
    const auto& pool = op.attr<std::vector<int32_t>>("pool");
    for (size_t k = 0; k < column.size(); ++k) {
      sources_.push_back({.padding = without_gradient(op.attr<std::vector<int64_t>>("padding_idx")[k]),
                          .column = column[k],
                          .per_row = per_row[k],
                          .pool = static_cast<Pool>(pool[k])});
    }
  }
  void make(const DeviceContext& c, const Tensor& table, SelectedRows* out) {
    for (size_t k = 0; k < sources_.size(); ++k) {
      sources_[k].ids = &c.at(ids_, static_cast<int>(k));
      sources_[k].grads = &c.at(grads_, static_cast<int>(k));
    }
    rows_.make(c, sources_, table.rows(), table.row_elems(), out);
  }

 private:
  In ids_, grads_;
  std::vector<QueuedSource> sources_;
  QueuedRows<T> rows_;
};

template <class T> class QueuedUpdate {
 public:
  explicit QueuedUpdate(const KernelArgs& op)
      : rule_(device::UpdateRows::of<T>(op.attr<std::string>("rule"), optim::Rows::kTouched)),
        sources_(op),
        param_(op.in("Param")),
        state_(op.in("State")),
        power_(op.in("Power")),
        out_(op.out("ParamOut")),
        state_out_(op.out("StateOut")),
        power_out_(op.out("PowerOut")),
        numbers_{op.in("LearningRate"), op.in("Beta1Tensor"), op.in("Beta2Tensor")},
        adam_(op.attr<std::string>("rule") == "adam") {
    const auto attribute = [&](const char* name) { return device::attribute<T>(op, name); };
    p_ = adam_ ? std::array{attribute("beta1"), attribute("beta2"), attribute("epsilon")}
               : std::array{1.0, 1.0, attribute("epsilon")};
  }

  void operator()(const DeviceContext& c) {
    sources_.make(c, c[param_], &rows_);
    device::UpdateArgs a{};
    a.param = device::updated(c, param_, out_);
    for (int k = 0; k < state_.count; ++k) {
      a.state[k] = device::updated(c, one_of(state_, k), Out{state_out_.first + k, 1});
    }
    a.rate = device::one_number<T>(c[numbers_[0]], device::kOtherFloat, a);
    for (int k = 0; k < 2 && adam_; ++k) {
      a.reads[k] = device::one_number<T>(c.at(power_, k), device::other_float_read(k), a);
      if (numbers_[1 + k]) {
        a.reads[2 + k] = device::one_number<T>(c[numbers_[1 + k]], device::other_float_read(2 + k), a);
      }
    }
    a.flags |= device::kNextPowers;
    a.n = c[out_].numel();
    std::copy(p_.begin(), p_.end(), a.p);
    rule_.launch(c, rows_, c[param_].shape(), a);
    if (!adam_) return;
    for (int k = 0; k < 2; ++k) a.state[k] = device::operand(c.at(power_out_, k));
    c.launch(next_powers_, a);
  }

 private:
  device::UpdateRows rule_;
  QueuedSources<T> sources_;
  ab_kernel next_powers_ = device::kernel_of<T>("next_powers");
  In param_, state_, power_;
  Out out_, state_out_, power_out_;
  std::array<In, 3> numbers_;
  bool adam_;
  std::array<double, 3> p_;
  SelectedRows rows_;
};

}  // namespace

template <class T> Kernel queued_concat(const KernelArgs& op) {
  const auto& table = op.attr<std::vector<int32_t>>("table");
  const auto& width = op.attr<std::vector<int32_t>>("width");
  const auto& source = op.attr<std::vector<int32_t>>("source");
  std::vector<typename QueuedParts<T>::Part> parts;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] < 0) {
      parts.push_back({.x = one_of(op.in("X"), -1 - source[i]), .ids = {}, .width = width[i]});
      continue;
    }
    const auto k = static_cast<size_t>(source[i]);
    parts.push_back({.x = one_of(op.in("W"), table[k]),
                     .ids = one_of(op.in("Ids"), source[i]),
                     .width = width[i],
                     .padding = op.attr<std::vector<int64_t>>("padding_idx")[k],
                     .pool = static_cast<Pool>(op.attr<std::vector<int32_t>>("pool")[k]),
                     .empty = static_cast<double>(op.attr<std::vector<float>>("pad_value")[k])});
  }
  return QueuedParts<T>(std::move(parts), op.out("Out"));
}

// The pass fuse_embeddings multiplies gradients by factors on the CPU only.
void check_no_factors(const KernelArgs& op) {
  AB_CHECK(op.in("Factor").count == 0, Unsupported, "Factor must be empty on a device, got {}", op.in("Factor").count);
}

template <class T> Kernel queued_table_grad(const KernelArgs& op) {
  check_no_factors(op);
  return [sources = QueuedSources<T>(op), w = op.in("W"), dw = op.out("W@GRAD")](const DeviceContext& c) mutable {
    if (c.needs(dw)) sources.make(c, c[w], &c.value(dw).template as<SelectedRows>());
  };
}

template <class T> Kernel queued_row_update(const KernelArgs& op) {
  check_no_factors(op);
  return QueuedUpdate<T>(op);
}

template <class T> Kernel queued_pooling(const KernelArgs& op) {
  std::vector<typename QueuedParts<T>::Part> one{{.x = op.in("W"),
                                                  .ids = op.in("Ids"),
                                                  .width = 0,
                                                  .padding = op.attr<int64_t>("padding_idx"),
                                                  .pool = Pool::kSum}};
  return QueuedParts<T>(std::move(one), op.out("Out"));
}

template <class T> Kernel queued_pooling_grad(const KernelArgs& op) {
  const bool sparse = op.attr<bool>("is_sparse");
  return
      [=, w = op.in("W"), ids = op.in("Ids"), dout = op.in("Out@GRAD"), dw = op.out("W@GRAD"),
       sources = std::vector<QueuedSource>{{.padding = op.attr<int64_t>("padding_idx"), .pool = Pool::kSum}},
       rows = QueuedRows<T>(), scratch = SelectedRows(), add = device::AddRows<T>()](const DeviceContext& c) mutable {
        if (!c.needs(dw)) return;
        sources[0].ids = &c[ids];
        sources[0].grads = &c[dout];
        SelectedRows* out = sparse ? &c.value(dw).template as<SelectedRows>() : &scratch;
        rows.make(c, sources, c[w].rows(), c[w].row_elems(), out);
        if (sparse) return;
        device::fill_zero(c, c[dw]);
        add(c, scratch, c[dw]);
      };
}

#define AB_INSTANTIATE(T)                                  \
  template Kernel queued_concat<T>(const KernelArgs&);     \
  template Kernel queued_table_grad<T>(const KernelArgs&); \
  template Kernel queued_row_update<T>(const KernelArgs&); \
  template Kernel queued_pooling<T>(const KernelArgs&);    \
  template Kernel queued_pooling_grad<T>(const KernelArgs&)
AB_INSTANTIATE(float);
AB_INSTANTIATE(double);
#undef AB_INSTANTIATE

}  // namespace anabranch::sparse
