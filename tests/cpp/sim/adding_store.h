// The parameters of one server of GeoRun: differences are added to them.
#pragma once
#include <algorithm>
#include <string>

#include "sim/defects.h"
#include "sim/geo.h"
#include "sim/grown_table.h"

namespace anabranch::ps::sim {

enum : uint32_t { kA, kT, kADelta, kTDelta, kG, kGDelta };

inline Tensor zeros(const Shape& shape) {
  Tensor t(shape, DType::kFloat64);
  std::fill_n(t.mutable_data<double>(), t.numel(), 0.0);
  return t;
}

class AddingStore final : public Store {
 public:
  AddingStore(Planted planted, const GrownRules& rules) : planted_(planted), grown_(rules) {}
  uint32_t number(std::string_view name) const override {
    if (name[0] == 'g') return name.ends_with(".delta") ? kGDelta : kG;
    return (name[0] == 'a' ? kA : kT) + (name.ends_with(".delta") ? 2U : 0U);
  }
  std::string name(uint32_t number) const override {
    return number >= kG ? "g" : std::string(1, number % 2 ? 't' : 'a');
  }
  uint32_t table_of(uint32_t gradient) const override {
    if (planted_ == Planted::kChangedRowsAreNotTold) return gradient;
    return gradient == kTDelta ? kT : gradient == kGDelta ? kG : gradient;
  }
  void apply(std::span<const Change> changes) override {
    ++applied_;
    for (int times = planted_ == Planted::kUpdatesComeTwice && applied_ % 20 == 0 ? 2 : 1; times > 0; --times) {
      for (const Change& c : changes) add(c);
    }
  }
  uint32_t variables() const override { return 6; }
  void read(uint32_t variable, Message* into) const override { into->add(variable, variable == kA ? a_ : t_); }
  void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    auto* to =
        static_cast<double*>(into->add_room(variable, Shape{static_cast<int64_t>(ids.size()), 1}, DType::kFloat64));
    for (const int64_t id : ids) *to++ = t_.data<double>()[id];
  }
  void read_changed(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    variable == kG ? grown_.read_changed(variable, ids, into) : Store::read_changed(variable, ids, into);
  }
  void read_table(uint32_t variable, uint64_t part, int bits, Message* into) const override {
    grown_.read_table(variable, part, bits, into);
  }
  std::vector<int64_t> take_told(uint32_t variable) override {
    std::vector<int64_t> told = variable == kG ? grown_.take_told() : std::vector<int64_t>();
    if (planted_ == Planted::kRemovedRowsAreNotTold) told.clear();
    return told;
  }
  std::vector<std::string> kept() const override { return {"a", "t", "g"}; }
  std::unique_ptr<Saving> begin_save() const override {
    auto saving = std::make_unique<SavedCopies>();
    saving->add("a", a_);
    saving->add("t", t_);
    grown_.save(saving.get(), "g");
    return saving;
  }
  void load(const std::string& name, const Tensor& value) override {
    if (planted_ == Planted::kStateIsNotLoaded) return;
    if (name == "g") return grown_.load(value);
    (name == "a" ? a_ : t_).copy_from(value);
  }
  const GrownTable& grown() const { return grown_; }
  double at(int64_t i) const { return i < kDense ? a_.data<double>()[i] : t_.data<double>()[i - kDense]; }

 private:
  void add(const Change& c) {
    if (c.variable == kGDelta) return grown_.add(c);
    if (!c.rows) {
      for (int64_t i = 0; i < kDense; ++i) a_.mutable_data<double>()[i] += c.dense.data<double>()[i];
      return;
    }
    for (size_t r = 0; r < c.rows->rows.size(); ++r) {
      t_.mutable_data<double>()[c.rows->rows[r]] += c.rows->value.data<double>()[r];
    }
  }

  const Planted planted_;
  Tensor a_ = zeros(Shape{kDense}), t_ = zeros(Shape{kRows, 1});
  GrownTable grown_;
  int64_t applied_ = 0;
};

}  // namespace anabranch::ps::sim
