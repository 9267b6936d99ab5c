#include "ps/sums.h"

#include <algorithm>
#include <cstring>

namespace anabranch::ps {
namespace {

template <class T> void add_to(T* sum, const char* payload, int64_t n) {
  const T* x = reinterpret_cast<const T*>(payload);
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// Contributions may differ only in their number of rows.
void check_alike(const std::vector<Contribution>& all) {
  const Contribution& first = all[0];
  const Shape shape = first.message->shape(first.part);
  for (const Contribution& c : all) {
    const Part& p = c.message->part(c.part);
    Shape here = c.message->shape(c.part);
    if (c.sparse && here.rank() > 0 && here.rank() == shape.rank()) here.set(0, shape[0]);
    AB_CHECK(c.sparse == first.sparse && p.dtype == first.message->part(first.part).dtype && here == shape &&
                 p.height == first.message->part(first.part).height,
             InvalidArgument, "trainers disagree on a gradient: {} {} from trainer {}, {} {} from trainer {}",
             first.sparse ? "rows" : "a tensor", shape.str(), first.message->header().client,
             c.sparse ? "rows" : "a tensor", c.message->shape(c.part).str(), c.message->header().client);
  }
}

}  // namespace

void add_tensor(Tensor* sum, const char* payload) {
  const int64_t n = sum->numel();
  switch (sum->dtype()) {
    case DType::kFloat32: return add_to(sum->mutable_data<float>(), payload, n);
    case DType::kFloat64: return add_to(sum->mutable_data<double>(), payload, n);
    case DType::kInt32: return add_to(reinterpret_cast<uint32_t*>(sum->mutable_raw()), payload, n);
    case DType::kInt64: return add_to(reinterpret_cast<uint64_t*>(sum->mutable_raw()), payload, n);
    default: AB_THROW(Unsupported, "sums over trainers of {}", dtype_name(sum->dtype()));
  }
}

Change Sum::of(uint32_t variable, const std::vector<Contribution>& contributions) {
  check_alike(contributions);
  Change out;
  out.variable = variable;
  if (contributions[0].sparse) {
    join(contributions, &out);
  } else {
    add(contributions, &out);
  }
  return out;
}

void Sum::add(const std::vector<Contribution>& contributions, Change* out) {
  const Contribution& first = contributions[0];
  if (contributions.size() == 1) {
    out->dense = Message::tensor(first.message, first.part);
    return;
  }
  dense_.resize(first.message->shape(first.part), static_cast<DType>(first.message->part(first.part).dtype));
  if (dense_.bytes()) std::memcpy(dense_.mutable_raw(), first.message->payload(first.part), dense_.bytes());
  for (size_t i = 1; i < contributions.size(); ++i) {
    add_tensor(&dense_, contributions[i].message->payload(contributions[i].part));
  }
  out->dense = dense_;
}

void Sum::join(const std::vector<Contribution>& contributions, Change* out) {
  const Contribution& first = contributions[0];
  rows_.height = first.message->part(first.part).height;
  rows_.rows.clear();
  for (const Contribution& c : contributions) {
    const auto ids = c.message->ids(c.part - 1);
    rows_.rows.insert(rows_.rows.end(), ids.begin(), ids.end());
  }
  out->rows = &rows_;
  for (const Contribution& c : contributions) {
    out->time = std::max(out->time, static_cast<uint32_t>(c.message->part(c.part).time));
  }
  if (contributions.size() == 1) {
    rows_.value = Message::tensor(first.message, first.part);
    return;
  }
  Shape shape = first.message->shape(first.part);
  shape.set(0, static_cast<int64_t>(rows_.rows.size()));
  joined_.resize(shape, static_cast<DType>(first.message->part(first.part).dtype));
  rows_.value = joined_;
  char* to = static_cast<char*>(joined_.mutable_raw());
  for (const Contribution& c : contributions) {
    const size_t bytes = c.message->part(c.part).bytes;
    if (bytes) std::memcpy(to, c.message->payload(c.part), bytes);
    to += bytes;
  }
}

}  // namespace anabranch::ps
